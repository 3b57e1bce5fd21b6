# Everything a user or CI needs; each target sets up what it lacks. No address of a registry is named here:
# pip and mvn use what the machine is configured with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.lock-$(shell sha256sum requirements.lock | cut -c1-16)
DEMO_VENV := .venv-demo
PEERS := $(VENV)/.peers-$(shell sha256sum requirements-bench.lock | cut -c1-16)
BROKER := .broker/libs
TOOLS := .tools/compose-go
# Processes that run the tests: many wait for a process, a page or a broker, so one more than a small machine has cores
JOBS ?= 3
RUN_TESTS := $(BIN)/python -m pytest
# Tests of which `make test` runs a smaller form
LONG_TESTS = $$(grep -rl --include='test_*.py' '^from tests.support.sizes import' tests)
# Some machines turn compiled files off; then each of the many processes that tests start compiles the product anew
export PYTHONDONTWRITEBYTECODE =
# Side by side, threads of OpenMP would wait for each other's cores more than they work. The order of files stays: the longest come first.
# A test that hangs ends its process, with the stack of each thread
SIDE_BY_SIDE := OMP_NUM_THREADS=1 $(RUN_TESTS) -n $(JOBS) --dist loadgroup --no-loadscope-reorder \
	-o faulthandler_timeout=400 -o faulthandler_exit_on_timeout=true

.PHONY: demo test test-quick lint style bench gpu card chaos real image dashboards screenshots prometheus chromium lock clean

demo: $(DEMO_VENV)/.ready            ## the main job on a small web made on this machine, with the base install; SERVE=1: then the console
	$(DEMO_VENV)/bin/farmwatch demo $(if $(SERVE),--serve)

test: style $(BROKER) prometheus chromium ## all checks and tests, a real Apache Kafka broker included
	nice $(BIN)/mypy & FARMWATCH_REQUIRE_KAFKA=1 $(SIDE_BY_SIDE) -m "not chaos and not bench and not image"; \
		tests=$$?; wait $$! && exit $$tests

test-quick: $(STAMP)                 ## under two minutes: no broker, no language model, no labelled pages
	$(SIDE_BY_SIDE) -m "not kafka and not kill and not chaos and not bench and not data and not slow" tests/unit

lint: style
	$(BIN)/mypy

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

bench: $(PEERS) $(BROKER)            ## measures beside the named peers; prints ratios, asserts nothing
	for bench in tests/bench/bench_*.py; do $(BIN)/python -m tests.bench.$$(basename $$bench .py) || exit 1; done

gpu: card $(STAMP)                   ## a pair and an encoder on this machine's NVIDIA card, random weights: figures, also in gpu-figures.json, and kill -9
	$(BIN)/python -m tests.bench.pair_bench --out gpu-figures.json
	FARMWATCH_TEST_DEVICE=cuda $(BIN)/python -m pytest -q -n 0 tests/faults/test_score_kills.py -k embedded-1

card:
	@nvidia-smi -L >/dev/null 2>&1 || { echo "farmwatch: this measures an NVIDIA card, and nvidia-smi sees none; on a CPU: python -m tests.bench.pair_bench --tiny" >&2; exit 3; }

real: $(STAMP) $(BROKER)             ## the labelled pages and the sample web through all stages, on both logs
	FARMWATCH_REQUIRE_KAFKA=1 FARMWATCH_REQUIRE_DATA=1 FARMWATCH_LONG=1 $(RUN_TESTS) -m "data and not chaos" -s $(LONG_TESTS) tests/unit/filters/quality

chaos: $(STAMP) $(BROKER) prometheus ## tests at full size: 50 kills a log, 72 of replays; faults and their alerts; thousands of simulations
	FARMWATCH_REQUIRE_KAFKA=1 FARMWATCH_LONG=1 $(RUN_TESTS) -m chaos -s tests/faults tests/e2e tests/ops
	FARMWATCH_REQUIRE_KAFKA=1 FARMWATCH_LONG=1 $(RUN_TESTS) -m "not chaos and not data" -s $(LONG_TESTS)

image: $(STAMP) $(TOOLS)             ## the container image in a bare root, Kustomize and compose: as root, with debootstrap and Go
	$(RUN_TESTS) -m image tests/deploy

dashboards: $(STAMP)                 ## dashboards and rules, from the tables in dashboards/
	$(BIN)/python -m dashboards

screenshots: $(STAMP) chromium prometheus ## the pictures of the console and of the dashboards in README.md and the docs
	$(BIN)/python -m tests.browser.screenshots docs/images
	$(BIN)/python -m tests.tools.dashboard_pictures docs/images

prometheus:                          # Debian's, and systemd's tool: tests are skipped without, but for FARMWATCH_REQUIRE_PROMETHEUS=1
	@tests/ops/install.sh || echo "make: no Prometheus and systemd-analyze: their tests are skipped" >&2

chromium:                            # Debian's: tests of the console in it are skipped without, but for FARMWATCH_REQUIRE_CHROMIUM=1
	@tests/browser/install.sh || echo "make: no Chromium: its tests are skipped" >&2

$(TOOLS):
	mkdir -p .tools
	GOBIN=$(CURDIR)/.tools go install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
	GOBIN=$(CURDIR)/.tools go install github.com/compose-spec/compose-go/v2/cmd@v2.9.1
	mv .tools/cmd $@

lock:                                ## resolve the dependencies anew
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --generate-hashes --python-version 3.11 -q \
		--custom-compile-command "make lock" -o requirements.lock
	$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --python-version 3.11 -q \
		-c requirements.lock --custom-compile-command "make lock" -o requirements-base.lock
	$(BIN)/uv pip compile pyproject.toml --extra bench --universal --generate-hashes --python-version 3.11 -q \
		-c requirements.lock --custom-compile-command "make lock" -o requirements-bench.lock
	$(BIN)/uv pip compile pyproject.toml --extra kafka --extra otel --extra signature --universal --generate-hashes --python-version 3.11 -q \
		-c requirements.lock --custom-compile-command "make lock" -o deploy/requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra kafka --extra otel --extra signature --extra gpu --universal --generate-hashes --python-version 3.11 -q \
		-c requirements.lock --custom-compile-command "make lock" -o deploy/requirements-gpu.lock

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "farmwatch needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps -e .
	rm -f $(VENV)/.lock-* && touch $@

$(PEERS): $(STAMP) requirements-bench.lock
	$(BIN)/python -m pip install -q --no-deps --require-hashes -r requirements-bench.lock
	rm -f $(VENV)/.peers-* && touch $@

$(DEMO_VENV)/.ready: requirements-base.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "farmwatch needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/python -m pip install -q --require-hashes -r requirements-base.lock
	$(DEMO_VENV)/bin/python -m pip install -q --no-deps -e .
	touch $@

$(BROKER): tests/broker/pom.xml tests/broker/install.sh | $(STAMP)
	tests/broker/install.sh
	[ -e .broker/classes.jsa ] || $(BIN)/python -m tests.support.kafka_broker

clean:
	rm -rf $(VENV) $(DEMO_VENV) .broker .prometheus .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis
