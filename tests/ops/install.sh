#!/bin/sh
# Unpacks Debian's Prometheus and Alertmanager into .prometheus/, without root and without installing them.
set -eu
cd "$(dirname "$0")/../.."
if [ -x .prometheus/usr/bin/prometheus ] && [ -x .prometheus/usr/bin/prometheus-alertmanager ]; then
    exit 0
fi
for tool in apt-get dpkg; do
    if ! command -v "$tool" >/dev/null; then
        echo "install.sh: $tool is missing; this takes packages of Debian" >&2
        exit 1
    fi
done
rm -rf .prometheus
mkdir -p .prometheus/packages
(cd .prometheus/packages && apt-get -q=2 -o APT::Sandbox::User=root download prometheus prometheus-alertmanager)
for package in .prometheus/packages/*.deb; do
    dpkg -x "$package" .prometheus
done
# Debian's Alertmanager reads its templates by this path: another of the same length, from the root of the repository
ln -s usr/share/prometheus/alertmanager .prometheus/alertmanager
sed -i 's#/usr/share/prometheus/alertmanager#.prometheus/./././././alertmanager#g' .prometheus/usr/bin/prometheus-alertmanager
rm -r .prometheus/packages
