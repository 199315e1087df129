#!/bin/sh
# Installs rmqfast on a machine that may have no Python yet, and asks what works: install.sh STORE PIP_ARGUMENT ...
# STORE is the unpacked tests/golden/basic-4.9.4.tar.gz. Without extras: nothing but rmqfast is installed.
set -eu
store=$1
shift
python() {
    for name in python3.11 python3 python3.12 python3.13 python3.14; do
        if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$name"
            return
        fi
    done
    return 1
}
if ! python >/dev/null; then
    if command -v apk >/dev/null; then
        apk add --quiet python3
    elif command -v dnf >/dev/null; then
        dnf install --quiet --assumeyes python3.11
    else
        apt-get update -qq && apt-get install -qq --yes python3 python3-venv >/dev/null
    fi
fi
place=$(mktemp -d)
"$(python)" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
"$place/venv/bin/python" "$(dirname "$0")/smoke.py" "$store" "$place/work"
rm -r "$place"
