# What people and continuous integration call; `make help` lists it. Nothing else has to be typed: every target sets up what
# it needs, once, from the lock files in requirements/. CARGO_TARGET_DIR and JAVA_HOME are honoured where they are set.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
unexport PYTHONPATH PYTHONHOME SPARK_HOME PYSPARK_DRIVER_PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PYTHON := .venv/bin/python
# Spark starts its workers with the `python3` of the path, unless it is told which.
pytest = PYSPARK_PYTHON=$(CURDIR)/$(1)/bin/python .ci/pytest $(1)/bin/python $(ARGS)
OLD_SPARKS := .venv-spark35 .venv-spark40
# Warnings are errors, but those that older PySparks cause themselves: 3.5 compares versions with distutils and asks pandas
# for dtypes in an old way; both leave the socket of a result to the garbage collector.
OLD_SPARK_WARNS := -W "ignore:distutils Version classes are deprecated:DeprecationWarning" \
	-W "ignore:is_datetime64tz_dtype is deprecated:DeprecationWarning" -W "ignore:unclosed <socket.socket:ResourceWarning"
PACKAGED := $(shell find Cargo.toml Cargo.lock pyproject.toml rust python -type f -not -path '*/target/*' \
	-not -path 'rust/*/tests/*' -not -path 'rust/*/benches/*' -not -path 'rust/fuzz/*' -not -name '*.pyc' -not -name '*.so' \
	-not -name '*.jar')
# The jar of the columnar source: Java of jvm/, Rust of rust/jvm; package data of the wheel.
JAR := python/rmqfast/spark/jars/rmqfast-columnar.jar
IN_JAR := $(shell find Cargo.toml Cargo.lock jvm rust/jvm rust/store/src rust/store/Cargo.toml -type f)

.PHONY: help demo test test-long soak faults fuzz bench lint format develop wheel lock clean tools tools-long

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do printf '  make %-10s %s\n' "$$name" "$$what"; done

demo: .venv/.installed ## write a store, read it with Spark, print what came out; ARGS go to `rmqfast demo`
	.venv/bin/rmqfast demo $(ARGS)

test: .venv/.installed ## the tests that take seconds; ARGS go to pytest
	cargo test --locked --workspace --exclude rmqfast-python --lib --tests --bench micro
	$(call pytest,.venv) -m "not long and not spark" -n auto --benchmark-disable
	$(call pytest,.venv) -m "spark and not long" --benchmark-disable

test-long: .venv/.installed $(OLD_SPARKS:%=%/.installed) | tools-long ## the tests that take minutes: kills, flips, older PySparks, real brokers; RMQFAST_FULL=1: in full numbers
	$(if $(RMQFAST_FULL),,SEEDS=$${SEEDS:-1500} MUTATIONS=$${MUTATIONS:-1500}) $(MAKE) faults
	tests/interop/real-rocketmq.sh build 4.9.4 5.3.3
	$(call pytest,.venv) -m "long and not soak" --benchmark-disable
	for venv in $(OLD_SPARKS); do $(call pytest,$$venv) $(OLD_SPARK_WARNS) -m "spark and not long$(if $(RMQFAST_FULL),, and not newest)" tests/spark || exit; done

soak: .venv/.installed | tools-long ## clients that come, go and are killed, on this broker and on RocketMQ's; fuzz targets; tens of minutes
	$(call pytest,.venv) -m soak --benchmark-disable

faults: tools ## losses of power for SEEDS seeds, calls that fail, stores torn and mutated MUTATIONS times, in one table
	RMQFAST_SEEDS=$${SEEDS:-10000} RMQFAST_MUTATIONS=$${MUTATIONS:-50000} \
		"$$(.ci/python 3.11)" tests/faults.py $(ARGS)

fuzz: tools ## each fuzz target for SECONDS_EACH, 20; needs cargo-fuzz
	cd rust/fuzz && for target in $$(sed -n 's/^name = "\([a-z0-9_]*\)"/\1/p' Cargo.toml); do \
		mkdir -p corpus/$$target; found=../../tests/corpus/$$target; \
		RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir . $$target corpus/$$target $$(test -d $$found && echo $$found) -- \
			-max_total_time=$${SECONDS_EACH:-20} -max_len=4096 -timeout=10 -rss_limit_mb=2048 || exit; done

bench: .venv/.installed $(OLD_SPARKS:%=%/.installed) | tools-long ## the benchmarks; ARGS go to benches/run.py
	$(PYTHON) benches/run.py $(ARGS)

lint: .venv/.installed ## every linter, Rust and Python; changes nothing
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/stubtest rmqfast._native._rmqfast
	PYTHONPATH=python .venv/bin/lint-imports --no-logo

format: .venv/.locked ## format Rust and Python, mend what the linters can mend
	cargo fmt --all
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

develop: .venv/.locked ## a quick unoptimised build, with python/ itself on the path
	.venv/bin/maturin develop
	jvm/build .venv/bin/python $(JAR) dev
	rm -f .venv/.installed

wheel: dist/.built ## the release wheel, in dist/

lock: .venv/.locked ## work the lock files out anew; ARGS=--upgrade takes newer versions
	for name in dev spark35 spark40; do UV_PYTHON_DOWNLOADS=never .venv/bin/uv pip compile --quiet --universal \
		--python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
		--custom-compile-command "make lock" $(ARGS) requirements/$$name.in --output-file requirements/$$name.txt || exit; done

clean: ## remove environments, wheels and caches; `cargo clean` removes what Rust built
	rm -rf .venv $(OLD_SPARKS) $(JAR) dist .demo .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

tools:
	@.ci/tools python cargo cc java openssl

tools-long: tools
	@.ci/tools python-old-spark maven

.venv/.locked: requirements/dev.txt | tools
	rm -rf $(@D)
	"$$(.ci/python 3.11)" -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --require-hashes --requirement $<
	touch $@

$(OLD_SPARKS:%=%/.locked): .venv-%/.locked: requirements/%.txt | tools-long
	rm -rf $(@D)
	"$$(.ci/python 3.11 3.12)" -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --require-hashes --requirement $<
	touch $@

$(JAR): $(IN_JAR) .venv/.locked | tools
	jvm/build .venv/bin/python $@

dist/.built: $(PACKAGED) $(JAR) .venv/.locked | tools
	rm -f dist/rmqfast-*.whl
	.venv/bin/maturin build --release --out dist
	touch $@

$(patsubst %,%/.installed,.venv $(OLD_SPARKS)): %/.installed: dist/.built %/.locked
	$(@D)/bin/python -m pip install --quiet --no-index --no-deps --force-reinstall dist/rmqfast-*.whl
	touch $@
