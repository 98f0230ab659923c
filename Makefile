# SPDX-License-Identifier: Apache-2.0
# The daily commands. `make` alone lists them.

JOBS ?= $(shell nproc)
PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
# What `make bench` runs beside the models it makes: larger real ones, where they are at hand.
BENCH_MODELS ?= $(wildcard $(addprefix ../shared/models/,$(addsuffix .tflite,\
  mobilenet_v1_025_224_float mlperf_vww_mobilenet_float mp_iris_landmark mp_palm_detection_full mp_pose_detection \
  coral_tf2_mobilenet_v2_ptq_int8 pt_mobilenet_v2_int8_nchw ssd_mobilenet_v1_coco_uint8 mlperf_ic_resnet8_int8 \
  coral_movenet_lightning_int8 coral_deeplab_cityscapes_uint8 mobilenet_v2_035_96_embedder kwt1_keyword_transformer \
  audio_cls_without_metadata)))
SOAK_SECONDS ?= 3600
# Where `make peers` finds the clones of others, and the environment that their tests run in.
SOURCES ?= $(PEER_MIRROR)
PEERS_VENV ?= .venv-peers
# What `make test` runs under the sanitizers. They are built beside the other tests, which leave half of the machine idle.
SANITIZED_FEW := leadline_fuzz fuzz_readers
# `make check` leaves out what takes long: large data that is interrupted, and Python tests that start other programs.
SLOW_CPP := *Interruption*
QUICK_PYTHON := $(addprefix tests/python/,$(addsuffix .py,test_lite test_budget test_tensors test_cli test_docs test_package \
  test_reprs test_stubs test_layering test_model_builder test_outputs test_job_plans))
export PYTHON
# Real models and data for tests and benchmarks, where they are at hand; tests that need them skip elsewhere.
ifneq ($(wildcard ../shared),)
export LEADLINE_SHARED ?= $(abspath ../shared)
endif

.DEFAULT_GOAL := help
.PHONY: help setup build demo test programs jupyterlab asan tsan bench bench-models soak soak-process soak-notebook \
  wheels sdist test-wheels instruction-counts survive survive-native survive-v2 peers fuzz fuzz-readers check coverage lint format clean
.DELETE_ON_ERROR:

help: ## list these commands
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what building and the demo need and is missing: Debian packages, .venv
	@tools/setup.sh build

# What other commands need beside that; each does it by itself.
setup-%:
	@tools/setup.sh $*

# ninja reruns cmake by itself when a CMake file changes, but it does not watch the presets.
build/%/build.ninja: CMakePresets.json
	cmake --preset $*
	@touch $@

.PRECIOUS: build/%/build.ninja

build: ## build (release) and install the package and the program into .venv; installs no Debian packages
	@tools/setup.sh --no-apt build
	@$(MAKE) --no-print-directory build/release/build.ninja
	cmake --build --preset release -j $(JOBS) --target product
	@tools/install_venv.sh build/release

demo: setup ## run the main job on a model made on the spot; installs what that needs
	@$(MAKE) --no-print-directory build
	$(VENV_PYTHON) examples/demo.py

check: setup-check ## what to run before every commit: format, lint, types, layering, the C++ tests, the quick Python tests
	@$(MAKE) --no-print-directory build
	cmake --build --preset release -j $(JOBS) --target leadline_tests
	@status=0; tools/lint.sh || status=1; \
	build/release/leadline_tests --gtest_brief=1 --gtest_filter=-$(SLOW_CPP) || status=1; \
	$(VENV_PYTHON) -m pytest $(QUICK_PYTHON) || status=1; \
	exit $$status

test: setup-tests ## build and run all tests: `make check`, C++, examples, installation, Python, notebooks, beside TensorFlow, fuzzing
	@$(MAKE) --no-print-directory check
	cmake --build --preset release -j $(JOBS)
	@tools/install_venv.sh build/release .venv-tensorflow
	@tools/lint.sh --tidy-changed build/release
	@$(MAKE) --no-print-directory build/asan/build.ninja
	@nice -n 19 cmake --build --preset asan -j $(JOBS) --target $(SANITIZED_FEW) >build/asan/build.log 2>&1 & sanitized=$$!; \
	status=0; \
	ctest --preset release -j $(JOBS) || status=1; \
	LEADLINE_COMPLETE=1 $(VENV_PYTHON) -m pytest --ignore=tests/python/test_fuzz.py || status=1; \
	LEADLINE_COMPLETE=1 .venv-tensorflow/bin/python -m pytest tests/tensorflow || status=1; \
	wait $$sanitized || { cat build/asan/build.log; status=1; }; \
	LEADLINE_FUZZ=$(CURDIR)/build/asan/leadline_fuzz $(VENV_PYTHON) -m pytest tests/python/test_fuzz.py || status=1; \
	build/asan/fuzz/fuzz_readers all 500 || status=1; \
	exit $$status

survive: setup-check ## cells that take all memory in kernels in containers of five sizes; hours; SURVIVE_ARGS="--containers 512MB --steps 5"; --healthy 100: those that fit
	@$(MAKE) --no-print-directory build
	$(VENV_PYTHON) tests/survive/survive.py $(SURVIVE_ARGS)

survive-native: setup-survive ## the same with jax, torch, pyarrow and TensorFlow; makes .venv-native, 6 GB; --unwatched for comparison
	@$(MAKE) --no-print-directory build
	@tools/install_venv.sh build/release .venv-native
	@tools/install_venv.sh build/release .venv-tensorflow
	$(VENV_PYTHON) tests/survive/survive.py --only 'jax;torch;pyarrow;shared map' --steps 8 --pauses 0 --python .venv-native/bin/python $(SURVIVE_ARGS)
	$(VENV_PYTHON) tests/survive/survive.py --only 'tf.;Keras' --steps 8 --pauses 0 --python .venv-tensorflow/bin/python $(SURVIVE_ARGS)

survive-v2: setup-vm ## tests of the watch in a virtual machine with control groups of version 2 and swap; VM_ACCELERATOR=tcg where KVM fails
	@$(MAKE) --no-print-directory build
	cmake --build --preset release -j $(JOBS) --target leadline_tests
	tests/survive/cgroup2_vm.sh

programs: setup-check ## other people's programs from PyPI, unchanged on Leadline beside LiteRT; makes .venv-programs, almost 1 GB
	@$(MAKE) --no-print-directory build
	LEADLINE_PROGRAMS=1 $(VENV_PYTHON) -m pytest tests/applications

jupyterlab: setup-jupyterlab ## kernels that die in a real JupyterLab in Chromium, and papermill; SCREENSHOTS=docs/images for pictures
	@$(MAKE) --no-print-directory build
	@tools/install_venv.sh build/release .venv-jupyterlab
	.venv-jupyterlab/bin/python -m pytest tests/jupyterlab

asan: setup-tests ## the C++ tests, and the Python tests of what reads and computes, under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory build/asan/build.ninja
	cmake --build --preset asan -j $(JOBS)
	@status=0; ctest --preset asan -j $(JOBS) || status=1; tools/sanitized_tests.sh || status=1; exit $$status

tsan: setup-check ## the C++ tests under ThreadSanitizer
	@$(MAKE) --no-print-directory build/tsan/build.ninja
	cmake --build --preset tsan -j $(JOBS)
	ctest --preset tsan -j $(JOBS)

fuzz: setup-tests ## 200,000 mutants of models under the sanitizers; SEED=2, MUTANTS=1000, FUZZ_ARGS="--only 17"
	@$(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory build/asan/build.ninja
	cmake --build --preset asan -j $(JOBS) --target leadline_fuzz
	$(VENV_PYTHON) fuzz/write_bases.py build/fuzz-bases.bin --heavy \
	  $(if $(LEADLINE_SHARED),--also $(wildcard $(addprefix $(LEADLINE_SHARED)/,models op_cases)))
	build/asan/leadline_fuzz --run $(wildcard fuzz/regressions/*.txt) --findings build/fuzz-findings --slow 10
	build/asan/leadline_fuzz --bases build/fuzz-bases.bin $(wildcard fuzz/regressions/*.txt) --seed $(or $(SEED),1) \
	  --count $(or $(MUTANTS),200000) --jobs $(JOBS) --findings build/fuzz-findings --slow 10 $(FUZZ_ARGS)

bench: setup-bench ## micro-benchmarks, then models beside LiteRT and OpenVINO: build/bench.html; BENCH=gemm_bench for one program
	@$(MAKE) --no-print-directory build
	cmake --build --preset release -j $(JOBS) --target $(or $(BENCH),leadline_bench)
	@for program in build/release/bench/$(or $(BENCH),*); do echo "== $$program"; $$program $(BENCH_ARGS) || exit 1; done
	@$(if $(BENCH),,$(MAKE) --no-print-directory bench-models)

bench-models: setup-bench ## only the models beside LiteRT and OpenVINO; COMPARE_ARGS="--only int8 --threads 1", BENCH_MODELS for others
	@$(MAKE) --no-print-directory build
	@tools/install_venv.sh build/release .venv-bench
	@$(VENV_PYTHON) bench/bench_models.py >build/bench-models.txt
	.venv-bench/bin/python bench/compare.py --also $(BENCH_MODELS) --json build/bench.json --html build/bench.html $(COMPARE_ARGS)

soak: setup-tests ## an hour of mixed work in one process and, beside it, in a notebook; SOAK_SECONDS=60 for less
	@$(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory -j2 soak-process soak-notebook

soak-process:
	@$(VENV_PYTHON) tests/soak/soak.py --seconds $(SOAK_SECONDS)

soak-notebook:
	@$(VENV_PYTHON) tests/soak/soak.py --seconds $(SOAK_SECONDS) --notebook

instruction-counts: setup-tests ## count the instructions of single ops again, for data/instruction_counts.json
	@$(MAKE) --no-print-directory build
	cmake --build --preset release -j $(JOBS) --target refresh_instruction_counts

fuzz-readers: setup-fuzz ## libFuzzer on every reader of files, FUZZ_MINUTES=5 each; READERS="npy elf" for some: build/fuzz/readers
	@$(MAKE) --no-print-directory build/fuzz/build.ninja
	cmake --build --preset fuzz -j $(JOBS) --target fuzz_readers
	$(VENV_PYTHON) fuzz/readers/run.py build/fuzz/fuzz/fuzz_readers --work build/fuzz/readers --jobs $(JOBS) \
	  --minutes $(or $(FUZZ_MINUTES),5) $(READERS)

peers: ## the test suites of LiteRT, Keras and keras-hub on Leadline; SOURCES=folder with their clones (tests/peers/README.md), SUITES=lite_v2 for one
	@test -n "$(SOURCES)" || { echo "make peers needs SOURCES=<folder with git clones of LiteRT, keras and keras-hub>"; exit 1; }
	@$(MAKE) --no-print-directory build
	@test -x $(PEERS_VENV)/bin/python || { $(PYTHON) -m venv $(PEERS_VENV) && \
	  $(PEERS_VENV)/bin/python -m pip install -q -r requirements-peers.txt; }
	@tools/install_venv.sh build/release $(PEERS_VENV)
	PEERS_ONLY="$(ONLY)" $(PEERS_VENV)/bin/python tests/peers/peers.py --sources "$(SOURCES)" $(SUITES)

wheels: setup-wheels ## dist/: wheels for x86_64 (manylinux_2_28), checked by auditwheel and abi3audit
	tools/wheels/build.sh $(MACHINES)

sdist: setup-wheels ## dist/: the source distribution, with third-party headers; builds with a C++20 compiler and Python alone
	@tools/wheels/environments.sh
	tools/wheels/sdist.sh build/wheels/python-3.11/bin/python

test-wheels: setup-check setup-wheels ## as root: installs the wheels of dist/ in fresh Debian 12 and 13, and does every job once
	@$(MAKE) --no-print-directory build
	tools/wheels/test.sh $(VENV_PYTHON) $(CASES)

coverage: setup-coverage ## which lines of C++ and Python the tests run: build/coverage/report/index.html
	@tools/coverage.sh

lint: setup-check ## format, lint, types and layering of everything, then clang-tidy over all C++ (about 20 minutes on 2 cores)
	@$(MAKE) --no-print-directory build
	@tools/lint.sh
	@tools/lint.sh --tidy build/release

format: setup-lint ## rewrite C++, Python, JavaScript and CSS in the project's format
	@tools/lint.sh --format

clean: ## remove build/ (keeps .venv)
	rm -rf build
