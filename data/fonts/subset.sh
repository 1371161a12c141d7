#!/bin/sh
# Makes the fonts beside this script from Debian 12 packages:
#   fonts-linuxlibertine 5.3.0-6   fonts-noto-core 20201225-1   fonttools 4.38.0-1+deb12u1
# apt-get install fonts-linuxlibertine fonts-noto-core fonttools
# The subsets carry neutral names, as the licence's reserved font names ask; copyright and licence records stay inside.
set -eu
cd "$(dirname "$0")"
export SOURCE_DATE_EPOCH=1600000000
libertine=/usr/share/fonts/opentype/linux-libertine
noto=/usr/share/fonts/truetype/noto
# Latin with the diacritics of scholarly transcription, Greek, Cyrillic, punctuation and primes; the regular face also has
# the accents of old Greek.
european='U+0020-007E,U+00A0-024F,U+0259,U+018F,U+02B0-02BF,U+02C6-02DD,U+0300-0338,U+0370-03FF,U+0400-052F,U+1E00-1EFF,U+2010-2027,U+2030-203A,U+2070-2089,U+2116,U+2212'
subset() { # source, product, code points, name inside
    /usr/bin/pyftsubset "$1" --output-file="$2" --unicodes="$3" --layout-features='ccmp,locl,mark,mkmk,kern,liga,rlig,isol,init,medi,fina' --no-hinting \
        --name-IDs='0,7,13,14' --notdef-outline --no-recalc-timestamp --drop-tables+=FFTM,PfEd
    /usr/bin/python3 - "$2" "$4" <<'PY'
import sys
from fontTools.ttLib import TTFont
path, name = sys.argv[1:]
font = TTFont(path, recalcTimestamp=False)
for record, text in ((1, name), (2, "Regular"), (4, name), (6, name.replace(" ", ""))):
    font["name"].setName(text, record, 3, 1, 0x409)
if "CFF " in font:
    cff = font["CFF "].cff
    cff.fontNames[0] = name.replace(" ", "")
    for key in ("FullName", "FamilyName"):
        setattr(cff[0], key, name)
font.save(path)
PY
}
subset "$libertine/LinLibertine_R.otf" serif-regular.otf "$european,U+1F00-1FFF" "Sheet Serif Regular"
subset "$libertine/LinLibertine_RI.otf" serif-italic.otf "$european" "Sheet Serif Italic"
subset "$libertine/LinLibertine_RZ.otf" serif-semibold.otf "$european" "Sheet Serif Semibold"
subset "$noto/NotoSerifGeorgian-Regular.ttf" georgian.ttf 'U+0020,U+10A0-10FF,U+1C90-1CBF,U+2D00-2D2F' "Sheet Georgian"
subset "$noto/NotoSerifArmenian-Regular.ttf" armenian.ttf 'U+0020,U+0530-058F,U+FB13-FB17' "Sheet Armenian"
subset "$noto/NotoNaskhArabic-Regular.ttf" arabic.ttf 'U+0020,U+0600-06FF,U+200C-200F' "Sheet Arabic"
sha256sum *.otf *.ttf
