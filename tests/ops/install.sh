#!/bin/sh
# Unpacks Debian's Prometheus, Alertmanager and systemd-analyze into .prometheus/, without root and without installing
# them.
set -eu
cd "$(dirname "$0")/../.."
if [ -x .prometheus/usr/bin/prometheus ] && [ -x .prometheus/usr/bin/prometheus-alertmanager ] \
    && [ -x .prometheus/usr/bin/systemd-analyze ]; then
    exit 0
fi
for tool in apt-get dpkg; do
    if ! command -v "$tool" >/dev/null; then
        echo "install.sh: $tool is missing; this takes packages of Debian" >&2
        exit 1
    fi
done
rm -rf .prometheus
# lists of packages of our own: a new machine has none, and its own ones need root
mkdir -p .prometheus/packages .prometheus/apt/lists/partial .prometheus/apt/cache/archives/partial
(
    cd .prometheus/packages
    set -- -q=2 -o Dir::State="$PWD/../apt" -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$PWD/../apt/cache"
    apt-get "$@" -o APT::Sandbox::User="$(id -un)" update
    apt-get "$@" -o APT::Sandbox::User="$(id -un)" download prometheus prometheus-alertmanager \
        systemd libsystemd-shared libapparmor1 libip4tc2 libkmod2 libseccomp2  # libraries that a small Debian lacks
)
for package in .prometheus/packages/*.deb; do
    dpkg -x "$package" .prometheus
done
# Debian's Alertmanager reads its templates by this path: another of the same length, from the root of the repository
ln -s usr/share/prometheus/alertmanager .prometheus/alertmanager
sed -i 's#/usr/share/prometheus/alertmanager#.prometheus/./././././alertmanager#g' .prometheus/usr/bin/prometheus-alertmanager
rm -r .prometheus/packages .prometheus/apt
