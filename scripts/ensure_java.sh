#!/bin/sh
# A Java 17+ runtime for Spark: the one there is, else Debian's, else a clear message.
set -eu

java_major() {
    "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

for java in "${JAVA_HOME:-/nonexistent}/bin/java" java; do
    if command -v "$java" >/dev/null 2>&1; then
        major=$(java_major "$java")
        if [ "${major:-0}" -ge 17 ]; then
            exit 0
        fi
    fi
done

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "No Java 17 or later found: installing openjdk-17-jre-headless."
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y openjdk-17-jre-headless >/dev/null
    exit 0
fi

echo "Spark needs Java 17 or later, and none was found." >&2
echo "Install one (Debian: sudo apt-get install openjdk-17-jre-headless) or set JAVA_HOME." >&2
exit 1
