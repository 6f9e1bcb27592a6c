#!/bin/sh
# What pip cannot bring: a Python it knows, and a C compiler with Python's and OpenSSL's headers, with which petlib is compiled.
python=${1:-python3}
if ! "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
    echo "check-system: $python is not Python 3.10, 3.11 or 3.12; install one and say: make PYTHON=python3.12 ..." >&2
    exit 1
fi
missing=
command -v cc >/dev/null 2>&1 || missing="a C compiler"
if [ -z "$missing" ]; then
    headers=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    probe() { printf '#include <%s>\n' "$1" | cc $2 -E -x c - >/dev/null 2>&1; }
    probe openssl/ec.h "-I/opt/homebrew/opt/openssl@3/include -I/usr/local/opt/openssl@3/include" || missing="the OpenSSL headers"
    probe Python.h "-I$headers" || missing="${missing:+$missing and }Python's headers"
fi
"$python" -c 'import venv, ensurepip' 2>/dev/null || missing="${missing:+$missing and }Python's venv"
[ -z "$missing" ] && exit 0
echo "check-system: $missing missing. This installs all of it:" >&2
if command -v apt-get >/dev/null 2>&1; then
    echo "  sudo apt-get update && sudo apt-get install -y gcc libc6-dev libssl-dev libffi-dev python3-dev python3-venv" >&2
elif command -v dnf >/dev/null 2>&1; then
    echo "  sudo dnf install -y gcc openssl-devel libffi-devel python3-devel" >&2
elif command -v brew >/dev/null 2>&1; then
    echo "  xcode-select --install; brew install openssl@3 libffi" >&2
else
    echo "  your system's packages for gcc, the OpenSSL 3 headers, libffi and the Python headers" >&2
fi
exit 1
