# Everything on a fresh Debian 12: `make demo` runs the main job, `make atlas` every paper's, `make test` the tests. All install what is missing.
# For others: `make wheel` (dist/), `make wheelhouse` (with all it depends on and install.sh), `make wheel-check`; `make wheels` for each Python
# that is on the machine (docs/install.md).
PYTHON ?= python3
# Another Python (PYTHON=python3.12) has an environment of its own.
VENV := .venv$(addprefix -,$(filter-out python3,$(notdir $(PYTHON))))
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What tests, documentation and packaging need besides: extras of pyproject.toml, installed by the targets that need them.
DEV := $(VENV)/.extra-dev
DOCS := $(VENV)/.extra-docs
PACKAGING := $(VENV)/.extra-packaging
# Where scikit-build-core builds the checkout's engine.
BUILD = build/$(shell $(PYTHON) -c 'import sys; print(sys.implementation.cache_tag)')
# As many processes as there are cores; the longest files begin (tests/README.md).
IN_PROCESSES := -n auto --dist loadfile --no-loadscope-reorder
# pytest OPTIONS: what fails beside other tests is run once more, alone and with the same seed, and decides (docs/decisions/project.md).
pytest = $(BIN)/python -m pytest $(1) $(IN_PROCESSES) || { [ $$? = 1 ] && echo "again, alone, what failed:" && \
  $(BIN)/python -m pytest $(1) -vv --last-failed --last-failed-no-failures none; }
# The versions that a release is tested with; `make newest` tries what has come out since.
CONSTRAINTS ?= packaging/constraints.txt
# Says what is done and how far it is; without a Python (Debian's is being installed) the command just runs.
STAGE = $(if $(shell command -v $(PYTHON)),$(PYTHON) packaging/stage.py $(1))
PINNED := $(addprefix -c ,$(CONSTRAINTS))
PIP = $(BIN)/python -m pip --disable-pip-version-check install $(PINNED)
INSTALL = $(BIN)/python packaging/install_packages.py $(PINNED)
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
APT_GET := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get
# apt_install PACKAGES: fails without root and sudo.
apt_install = { [ -n "$(SUDO)" ] || [ "$$(id -u)" = 0 ] || { echo "not root and no sudo: install $(1) by hand" >&2; false; }; } && \
  $(call STAGE,"installing $(1) (Debian)") sh -c "$(APT_GET) update -qq && $(APT_GET) install -y --no-install-recommends $(1)"

.PHONY: demo atlas test test-long exhaustive unit docs images validate judged bench lint sanitize clean setup engine newest apt apt-gtest apt-chromium apt-test apt-exhaustive
demo: setup
	$(BIN)/retrompi reproduce baker-fox --out out/baker-fox

atlas: setup
	$(BIN)/retrompi reproduce all --out out/atlas

test: apt-test unit $(DEV)
	$(call pytest,--durations=10)

# What `make test` leaves out, which CI runs as well: browsers, servers, recorded programs, the documentation's commands (tests/long.csv).
test-long: apt-test setup $(DEV)
	$(call pytest,--long --durations=25)

# What takes minutes where `make test` has examples of it: every case of what that samples, docs' commands in shells, an engine of one's own.
exhaustive: apt-exhaustive setup $(DEV)
	$(call pytest,--exhaustive --durations=25)

# The engine's C++ unit tests: they link the objects that the checkout's module is made of, with assertions of invariants on.
unit: setup apt-gtest
	@cmake -S . -B $(BUILD) >build/unit.log || { cat build/unit.log; exit 1; }
	@$(call STAGE,"compiling the unit tests") cmake --build $(BUILD) --target engine_unit
	$(BUILD)/engine_unit --gtest_brief=1

# The site is built without a network and read without one; a warning is an error.
docs: setup $(DOCS) apt-chromium
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --clean
	@echo "the documentation: out/site/index.html"

# The two images of README.md, of today's product.
images: setup $(DEV) apt-chromium
	$(BIN)/python packaging/images.py

validate: setup
	$(BIN)/retrompi validate --paper baker-fox

# The verdicts that the package comes with: whenever tests/test_judged.py says so.
judged: setup
	$(BIN)/python packaging/judged.py

bench: setup
	$(BIN)/python benchmarks/bench.py

lint: setup $(DEV)
	$(BIN)/ruff check .
	@# mypy cannot see the folders that the build maps into the package: give it the package as it is installed
	@rm -rf build/lint && mkdir -p build/lint/retrompi && cd build/lint/retrompi && \
	  ln -s ../../../src/retrompi/* . && for d in models platforms scenarios validate cli; do ln -s ../../../$$d $$d; done
	@# scripts of predictions import what lies beside them
	cd build/lint && MYPYPATH=../../validate/predictions/applications ../../$(BIN)/mypy --config-file ../../pyproject.toml -p retrompi
	@# every lab's reference.py has the same module name, so each is looked at by itself
	cd build/lint && for f in ../../labs/*/reference.py; do ../../$(BIN)/mypy --config-file ../../pyproject.toml $$f || exit 1; done
	@# the code of a paper is a package of its own, under a name that Python can import
	cd build/lint && for d in ../../validate/papers/*/experiments; do p=$$(dirname $$d); n=paper_$$(basename $$p | tr .- __); ln -s $$p $$n && \
	  ../../$(BIN)/mypy --config-file ../../pyproject.toml -p $$n || exit 1; done
	@# who imports whom: the contracts of pyproject.toml, and no circles
	$(BIN)/python packaging/imports.py
	@# the same of the engine's files
	$(BIN)/python packaging/includes.py
	@# Debian 12's version of it: later ones lay out otherwise
	$(BIN)/clang-format --dry-run -Werror src/retrompi/engine/*/*.?pp src/retrompi/measure/smpi/native/*.?pp benchmarks/*.cpp tests/cpp/*.?pp

sanitize: setup apt-gtest
	benchmarks/sanitize.sh

setup: engine

# The compiler, SimGrid and CMake come from Debian; only what is missing is installed.
apt:
	@missing=""; \
	command -v c++ >/dev/null || missing="$$missing g++"; \
	command -v cmake >/dev/null || missing="$$missing cmake"; \
	command -v ninja >/dev/null || missing="$$missing ninja-build"; \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || missing="$$missing python3-venv"; \
	[ -e "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] || missing="$$missing python3-dev"; \
	ls /usr/include/simgrid/version.h >/dev/null 2>&1 || [ -n "$$SIMGRID_ROOT" ] || missing="$$missing libsimgrid-dev"; \
	[ -z "$$missing" ] || { $(call apt_install,$$missing); }

# GoogleTest, for the C++ unit tests.
apt-gtest:
	@[ -e /usr/include/gtest/gtest.h ] || { $(call apt_install,libgtest-dev); }

# What the tests use besides, by one call of apt-get: an MPI for recording, bubblewrap for programs of students, PostgreSQL for the store,
# Chromium for the studio, shells and readers of man pages. Failing to install them is no error: what needs them is skipped, and named at
# the end. Debian would make and start a PostgreSQL server at once: it is told not to, for this one installation.
NO_SERVER := /etc/postgresql-common/createcluster.d/retrompi-tests.conf
apt-test:
	@missing=""; need() { command -v $$1 >/dev/null || missing="$$missing $$2"; }; \
	[ -e /usr/include/gtest/gtest.h ] || missing="libgtest-dev"; \
	need mpicc "mpich libmpich-dev"; need gfortran gfortran; need bwrap bubblewrap; need shellcheck shellcheck; need mandoc mandoc; \
	need zsh zsh; need fish fish; ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || need initdb postgresql; \
	command -v chromium-browser google-chrome >/dev/null || need chromium chromium; \
	$(install_for_tests)

# `make exhaustive` records with Open MPI and mpi4py too.
apt-exhaustive: apt-test
	@missing=""; command -v mpicc.openmpi >/dev/null || missing="openmpi-bin libopenmpi-dev"; \
	/usr/bin/python3 -c 'import mpi4py' 2>/dev/null || missing="$$missing python3-mpi4py"; \
	$(install_for_tests)

define install_for_tests
[ -z "$$missing" ] || { case "$$missing" in *postgresql*) $(SUDO) mkdir -p $(dir $(NO_SERVER)); \
	  echo "create_main_cluster = false" | $(SUDO) tee $(NO_SERVER) >/dev/null;; esac; $(call apt_install,$$missing); code=$$?; \
	  $(SUDO) rm -f $(NO_SERVER); [ $$code = 0 ]; } || echo "could not be installed:$$missing"
endef

# Pages are looked at in Debian's Chromium, which Playwright is pointed at: it downloads no browser of its own.
apt-chromium:
	@command -v chromium chromium-browser google-chrome >/dev/null || { $(call apt_install,chromium); }

# What retrompi runs with, and retrompi itself (editable). pip's build of it is shown line by line, so that the stage can say how far it is.
$(STAMP): pyproject.toml $(CONSTRAINTS) | apt
	@mkdir -p build && $(PYTHON) packaging/needs.py build >build/needs-build.txt && $(PYTHON) packaging/needs.py >build/needs.txt
	@[ -x $(BIN)/python ] || $(call STAGE,"making $(VENV)") $(PYTHON) -m venv $(VENV)
	@$(call STAGE,"installing what retrompi is built and runs with") $(INSTALL) -r build/needs-build.txt -r build/needs.txt
	@$(call STAGE,"compiling the engine") $(PIP) -v --no-deps --no-build-isolation -e .
	@touch $@

# What has changed in the engine since. The file is replaced, not written into: simulations that run have it mapped.
engine: $(STAMP)
	@$(call STAGE,"compiling the engine") cmake --build $(BUILD) --target _engine
	@to=$$(echo $(VENV)/lib/python3.*/site-packages/retrompi); for built in $(BUILD)/_engine.*.so; do \
	  [ $$to/$${built##*/} -nt $$built ] || install -s $$built $$to; done

# setuptools: otf2 is built from source, and from Python 3.12 on a new environment has none.
$(VENV)/.extra-%: $(STAMP)
	@$(PYTHON) packaging/needs.py $* >build/needs-$*.txt
	@$(call STAGE,"installing what is needed for $*") $(INSTALL) "setuptools>=68" -r build/needs-$*.txt
	@touch $@

# The newest versions of everything, on purpose, in an environment of their own: they are written down when all tests pass with them.
newest:
	@rm -rf .venv-newest
	@$(MAKE) --no-print-directory test VENV=.venv-newest CONSTRAINTS=
	@head -1 packaging/constraints.txt >build/constraints.txt && \
	  .venv-newest/bin/python -m pip freeze --disable-pip-version-check --exclude-editable >>build/constraints.txt && mv build/constraints.txt packaging/

# -- for others: the wheel ---------------------------------------------------------------------------------------------------

# The Python that a wheel is for: the one that the checkout is set up with, or another.
FOR ?= $(PYTHON)
PYTHONS ?= 3.11 3.12 3.13 3.14
TAG = $(shell $(FOR) -c 'import sys; print("cp%d%d" % sys.version_info[:2])')

.PHONY: man simgrid sdist wheel wheelhouse wheel-check wheels apt-boost
# Man pages and shell completions, from the commands; a wheel or a source distribution takes them along.
man: setup $(PACKAGING)
	@$(BIN)/python packaging/manpages.py build/share

# The SimGrid that the wheel carries: build/simgrid/root, from its source distribution; nothing when it is there already.
simgrid: setup apt-boost
	@PYTHON=$(BIN)/python $(call STAGE,"building SimGrid for the wheel") packaging/simgrid.sh build/simgrid

sdist: man
	@mkdir -p dist && rm -f dist/retrompi-*.tar.gz
	@$(BIN)/python -m build --sdist --no-isolation --outdir dist . >build/sdist.log 2>&1 || { cat build/sdist.log >&2; exit 1; }
	@ls -sh dist/retrompi-*.tar.gz

# From the source distribution, in an environment of its own: what a user of it would do. auditwheel puts SimGrid inside.
wheel: sdist simgrid
	@rm -rf build/wheel dist/retrompi-*-$(TAG)-*.whl && $(FOR) -m venv build/wheel/env
	@$(if $(CONSTRAINTS),PIP_CONSTRAINT=$(CURDIR)/$(CONSTRAINTS)) SIMGRID_ROOT=$(CURDIR)/build/simgrid/root $(call STAGE,"building the wheel") build/wheel/env/bin/python -m pip wheel -v --disable-pip-version-check --no-deps -w build/wheel \
	  -C cmake.define.RETROMPI_LICENCES=$(CURDIR)/build/simgrid/licences dist/retrompi-*.tar.gz
	@PATH=$(CURDIR)/$(BIN):$$PATH auditwheel repair --strip -w dist build/wheel/retrompi-*.whl >build/wheel/repair.log 2>&1 || { cat build/wheel/repair.log >&2; exit 1; }
	@ls -sh dist/retrompi-*-$(TAG)-*.whl

# A folder that installs without a network: the wheel, all it depends on, install.sh, and the sources of what is under the LGPL.
wheelhouse: wheel
	@rm -rf dist/wheelhouse && mkdir -p dist/wheelhouse/sources
	@$(call STAGE,"downloading what the wheel depends on") build/wheel/env/bin/python -m pip download --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS)) --only-binary :all: -d dist/wheelhouse dist/retrompi-*-$(TAG)-*.whl
	@cp packaging/install.sh dist/wheelhouse/
	@cp dist/retrompi-*.tar.gz build/simgrid/simgrid-*.tar.gz dist/wheelhouse/sources/
	@du -sh dist/wheelhouse

# In an empty folder, as somebody else, with no compiler and no SimGrid to be seen where the machine lets us hide them.
wheel-check: wheelhouse
	@$(call STAGE,"simulating with the checkout") sh -c '$(BIN)/python packaging/picoseconds.py >build/picoseconds.txt'
	@$(FOR) packaging/check_wheel.py dist/wheelhouse --picoseconds build/picoseconds.txt

# One for each Python that is on this machine, each tested as above; afterwards dist/ has no others.
wheels:
	@rm -f dist/retrompi-*.whl
	@for v in $(PYTHONS); do \
	  if python$$v -c '' 2>/dev/null; then echo "Python $$v"; $(MAKE) --no-print-directory wheel-check FOR=python$$v || exit 1; \
	  else echo "Python $$v is not on this machine: no wheel for it"; fi; done
	@ls -sh dist/retrompi-*.whl

# Headers, to build SimGrid for the wheel.
apt-boost:
	@[ -e /usr/include/boost/version.hpp ] || { $(call apt_install,libboost-dev); }

clean:
	rm -rf build dist out .pytest_cache $(VENV)

# -- translations (docs/translating.md) --------------------------------------------------------------------------------------

.PHONY: messages messages-labs
# Catalogues of src/retrompi/locale brought into step with the code: new texts to be translated, gone ones removed.
messages: setup $(DEV)
	@$(BIN)/python packaging/messages.py

# After translating what changed in the labs: they follow the English as it is now.
messages-labs: setup $(DEV)
	@$(BIN)/python packaging/messages.py --labs --translated
