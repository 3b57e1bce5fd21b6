#!/bin/sh
# Installs Debian's Chromium, as root; elsewhere the operator does: apt-get install chromium
set -eu
if command -v chromium >/dev/null; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "install.sh: chromium is missing; as root on Debian this installs it" >&2
    exit 1
fi
apt-get -q=2 update
DEBIAN_FRONTEND=noninteractive apt-get -q=2 install --no-install-recommends -y chromium >/dev/null
