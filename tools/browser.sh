#!/usr/bin/env bash
# Make sure that the tests of pages have a browser; says which, or why there is none.
set -euo pipefail
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  if command -v "$name" >/dev/null; then
    echo "browser: $(command -v "$name")"
    exit 0
  fi
done
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo "no browser, and none can be installed here; install Chromium yourself" >&2
  exit 0  # the tests that need one are skipped and say so
fi
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium fonts-liberation >/dev/null
echo "browser: $(command -v chromium)"
