#!/bin/sh
# A Chromium for the studio's browser test: the one there is, else Debian's, else a clear message.
set -eu

for browser in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$browser" >/dev/null 2>&1; then
        exit 0
    fi
done

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "No Chromium found: installing Debian's."
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium >/dev/null
    exit 0
fi

echo "The studio is tested in Chromium, and none was found." >&2
echo "Install one (Debian: sudo apt-get install chromium), or leave that test out:" >&2
echo "    .venv/bin/python -m pytest --ignore tests/studio/test_browser.py" >&2
exit 1
