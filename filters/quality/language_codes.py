"""The languages that the identifier can tell, without its model: what a ruleset may name."""

from __future__ import annotations

_CODES = """
af am an ar as az ba be bg bn br bs ca cs cy da de dz el en eo es et eu fa fi fo fr fy ga gd gl gu ha he hi hr ht hu
hy id ig is it ja jv ka kk km kn ko ku ky la lb lg ln lo lt lv mg mk ml mn mr ms mt my ne nl nn no oc om or pa pl ps
pt qu ro ru rw sa se si sk sl sn so sq sr st sv sw ta te tg th tk tl tr tt ug uk ur uz vi vo wa xh yo zh zu ace ary
arz bcl crh ext fuv gcf gcr gom grc gug guw hbo kab kik lij ltg nso pcm sdh uzs vec wuu yue zxx
"""

LANGUAGES = frozenset(_CODES.split())
"""ISO 639 codes: two letters where the language has such a code, else three; zxx is text in no language."""
