"""Words of texts that ask for consent, in lower case: what they ask for, and the choice that they offer.

Of a language only with a wall and an article about privacy among the tests.
"""

from __future__ import annotations

from collections.abc import Sequence

import re2

LABEL_CHARS = 40  # of a button, at most

_SUBJECT = re2.compile(
    r"cookie|\bgdpr\b|\bconsent\b|\bprivacy|personal (?:data|information)|datenschutz|personenbezogene|vie privée|"
    r"données (?:à caractère personnel|personnelles)|datos personales|privacidad|dati personali|persoonsgegevens|"
    r"danych osobowych|dane osobowe|prywatnoś|персональны[емх]+ данн|конфиденциальност|クッキー|個人情報|"
    r"プライバシー|隐私|隱私|个人信息|ملفات تعريف|البيانات الشخصية|الخصوصية"
)
_CHOICE = re2.compile(
    r"\b(?:accept|agree|reject|decline|refuse|deny|consent to|allow all|opt out|if you continue|by continuing|"
    r"manage (?:your )?(?:settings|options|preferences|choices|cookies))\b|"
    r"\b(?:akzeptier|ablehn|zustimm|einverst[aä]nd)|"
    r"\b(?:accepte[rz]?|refuse[rz]|paramétrer)\b|\b(?:aceptar?|acepto|rechaz(?:ar?|o))\b|"
    r"\b(?:accett(?:a|are|o)|rifiut(?:a|are|o))\b|\b(?:accepteer|accepteren|weiger|weigeren)\b|"
    r"zaakceptuj|zaakceptować|akceptuj|odrzuć|odrzucić|принять|принимаю|отклонить|согласен|同意|許可|拒否|接受|拒绝|"
    r"拒絕|允许|قبول|رفض|موافق"
)
_READER = re2.compile(
    r"\b(?:we|our|you|your|wir|unsere[nrms]?|ihre[nrms]?|nous|nos|vous|votre|nuestr[ao]s?|usamos|puede|noi|nostri|usiamo|"
    r"puoi|wij|onze|uw|nasi|używamy|możesz)\b|(?:^|[^\pL])(?:мы|наши|вы|ваш[аеиу]?[мх]?)(?:[^\pL]|$)|当社|お使い|我们|您|نستخدم|يمكنك|شركاؤنا"
)
_OK = re2.compile(r"(?:^|[^\pL])(?:ok|okay|got it|i understand|understood|verstanden|entendido)[^\pL]*$")  # at its end


def is_about_consent(text: str) -> bool:
    """Whether a text speaks of cookies, privacy or personal data."""
    return bool(_SUBJECT.search(text))


def tells_reader_of_consent(text: str) -> bool:
    """Whether a text speaks of them to its reader, as news and recipes do not."""
    return bool(_SUBJECT.search(text) and _READER.search(text))


def offers_choice(label: str) -> bool:
    """Whether this is the label of a button that gives or refuses consent."""
    return len(label) <= LABEL_CHARS and bool(_CHOICE.search(label))


def asks_for_consent(lines: Sequence[str]) -> bool:
    """Whether one of the lines speaks of them, and it offers a choice, or a line as short as a label does."""
    about = [line for line in lines if is_about_consent(line)]
    labels = [line for line in lines if len(line) <= LABEL_CHARS]
    return bool(about) and any(_CHOICE.search(line) or _OK.search(line) for line in about + labels)
