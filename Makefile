# histmap: `make demo` builds the example map, `make test` runs every check. Both install what is missing.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := demo
OUT := out/caucasus-1200

.PHONY: demo test install bench deps clean

demo: deps
	cargo run --release -- build --era 1200 --region caucasus --out $(OUT) --overwrite

test: deps
	cargo fmt --check
	cargo clippy --release --all-targets -- -D warnings
	cargo test --release
	RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps

install: deps
	cargo install --path . --locked

bench: deps
	cargo bench

# libgdal with its headers, and GDAL's programs for the tests' oracles.
deps:
	@if pkg-config --exists gdal 2>/dev/null && command -v gdalinfo >/dev/null; then exit 0; fi; \
	packages="libgdal-dev gdal-bin pkg-config build-essential"; \
	if ! command -v apt-get >/dev/null; then \
	  echo "histmap needs GDAL 3.6 or later with headers, gdal-bin, pkg-config and a C linker: install them with your system's packages" >&2; exit 1; fi; \
	if [ "$$(id -u)" = 0 ]; then run=""; \
	elif command -v sudo >/dev/null; then run="sudo"; \
	else echo "neither root nor sudo here: ask an administrator for 'apt-get install $$packages'" >&2; exit 1; fi; \
	echo "installing $$packages"; \
	$$run apt-get update -qq; \
	$$run env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$packages >/dev/null

clean:
	rm -rf out target
