// SPDX-License-Identifier: Apache-2.0
// The extension module leadline._leadline: declares it and calls one init function per public header.
#include "module.h"

#include "engine_call.h"
#include "leadline/version.h"

NB_MODULE(_leadline, m) {
  m.doc() = "Leadline's native part. Use it through the package `leadline`.";
  m.attr("__version__") = leadline::kVersion;
  leadline::python::init_error(m);
  leadline::python::init_types(m);
  leadline::python::init_time_limit(m);
  leadline::python::init_budget(m);
  leadline::python::init_model(m);
  leadline::python::init_model_builder(m);
  leadline::python::init_keras_layer(m);
  leadline::python::init_converter(m);
  leadline::python::init_op_list(m);
  leadline::python::init_observer(m);
  leadline::python::init_plan(m);
  leadline::python::init_job_plan(m);
  leadline::python::init_devices(m);
  leadline::python::init_interpreter(m);
  leadline::python::init_custom_op(m);
  leadline::python::init_debugger(m);
  leadline::python::init_guard(m);
  leadline::python::init_watch(m);
  leadline::python::init_allocators(m);
  leadline::python::init_doctor(m);
  leadline::python::init_laps(m);
  leadline::python::init_live_objects(m);
  leadline::python::init_object_census(m);
  leadline::python::init_calibration(m);
  leadline::python::init_quantizer(m);
  leadline::python::init_jobs(m);
  leadline::python::init_samples(m);
  leadline::python::init_evaluate(m);
  leadline::python::init_records(m);  // the last: it looks at what the others bound
}
