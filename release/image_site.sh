#!/bin/sh
# Lays out the packages of the image, for whichever processor: image_site.sh ARCHITECTURE WHEELS REQUIREMENTS SITE
# ARCHITECTURE is Docker's name of it. Nothing of that processor is run, so that no emulation is needed.
set -eu
case $1 in
amd64) processor=x86_64 ;;
arm64) processor=aarch64 ;;
*)
    echo "expected amd64 or arm64, got $1" >&2
    exit 2
    ;;
esac
wheels=$2 requirements=$3 site=$4
install() {
    python -m pip install --quiet --disable-pip-version-check --no-cache-dir --target "$site" \
        --only-binary :all: --implementation cp --python-version 3.11 --platform "manylinux_2_28_$processor" \
        --platform "manylinux_2_17_$processor" --platform "manylinux2014_$processor" "$@"
}
# The first one, as its command is in bin: pip leaves a bin that is there as it is.
install --no-index --no-deps "$wheels"/rmqfast-*manylinux*"_$processor.whl"
install --require-hashes --requirement "$requirements"
