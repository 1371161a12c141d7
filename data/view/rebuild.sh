#!/bin/sh
# Makes three.min.js, the library of the page of `histmap view`, from entry.js and the npm packages named here. Needs node and
# npm; the cargo build does not run it. Two runs give the same bytes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/entry.js" "$work/"
cd "$work"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund three@0.187.0 esbuild@0.28.2
printf '/*! three.js 0.187.0\n%s\n*/' "$(cat node_modules/three/LICENSE)" >banner.txt
./node_modules/.bin/esbuild entry.js --bundle --minify --format=iife --global-name=THREE --target=es2022 \
  --banner:js="$(cat banner.txt)" --outfile="$here/three.min.js"
sha256sum "$here/three.min.js"
