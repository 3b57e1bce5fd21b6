#!/bin/sh
# Copies the jars of the test broker to .broker/libs, once per content of pom.xml. Needs Java 17 and Maven.
set -eu
cd "$(dirname "$0")/../.."
digest=$(sha256sum tests/broker/pom.xml | cut -d' ' -f1)
if [ "$(cat .broker/pom.sha256 2>/dev/null || true)" = "$digest" ]; then
    exit 0
fi
for tool in java mvn; do
    if ! command -v "$tool" >/dev/null; then
        echo "install.sh: $tool is missing; install a Java 17 runtime and Maven" >&2
        exit 1
    fi
done
rm -rf .broker
mkdir -p .broker
mvn -q -B -Dstyle.color=never -f tests/broker/pom.xml dependency:copy-dependencies -DoutputDirectory="$PWD/.broker/libs"
echo "$digest" >.broker/pom.sha256
