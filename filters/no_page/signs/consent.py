"""Words of texts that ask for consent, in lower case: what they ask for, and the choice that they offer."""

from __future__ import annotations

import re2

_SUBJECT = re2.compile(
    r"cookie|gdpr|\bconsent|privacy|personal (?:data|information)|datenschutz|personenbezogen|einwillig|"
    r"vie privée|données personnelles|traceurs|privaci|datos personales|dados pessoais|dati personali|"
    r"persoonsgegevens|personlig|personoppl|personuppg|personopl|prywatno|danych osobowych|dane osobowe|ciasteczk|"
    r"кук[ией]|персональн|конфиденц|приватн|особист|поверител|çerez|gizlilik|kişisel veri|eväste|tietosuoj|süti|"
    r"adatvéd|osobní|osobné|piškot|kolačić|slapuk|sīkdat|küpsis|kapsler|απόρρητο|προσωπικ|クッキー|個人情報|"
    r"プライバシー|쿠키|개인정보|隐私|隱私|个人信息|個人資料|ملفات تعريف|الخصوصية|خصوصيت|עוגיות|פרטיות|คุกกี้|"
    r"ข้อมูลส่วนบุคคล|कुकी|गोपनीयता|کوکی|حریم خصوصی"
)
_CHOICE = re2.compile(
    r"accept|agree|allow (?:all|cookies)|consent|reject|decline|refuse|got it|understood|\bok\b|okay|settings|"
    r"preferences|partners|dismiss|akzept|zustimm|einwillig|ablehn|einverstanden|einstellung|verstanden|refus|"
    r"paramétr|d'accord|autoris|fermer|acept|rechaz|configur|de acuerdo|entendido|aceit|rejeit|recus|concord|"
    r"accett|rifiut|acconsent|chiud|weiger|toestem|akkoord|instelling|akcept|zgod|zgad|odrzu|rozumiem|приня|прийм|"
    r"принима|приема|соглас|съглас|погодж|отклон|відхил|godkän|godta|godkend|tillad|avvis|afvis|samty|neka|hyväks|"
    r"hylk|přij|prij|prihvat|souhlas|súhlas|odmít|elfogad|hozzájár|elutas|sunt de acord|kabul|redde|onay|αποδ|"
    r"συμφων|απόρριψ|sutink|piekr|nõus|同意|許可|拒否|承諾|设置|接受|拒绝|拒絕|允许|동의|허용|거부|수락|قبول|"
    r"موافق|رفض|أوافق|אישור|מסכים|קבל|ยอมรับ|ยินยอม|स्वीकार|پذیر|terima|setuju|tolak|chấp nhận|đồng ý|từ chối"
)


def is_about_consent(text: str) -> bool:
    """Whether a text speaks of cookies, privacy or personal data."""
    return bool(_SUBJECT.search(text))


def asks_for_consent(text: str) -> bool:
    """Whether a text speaks of them and offers a choice."""
    return bool(_SUBJECT.search(text) and _CHOICE.search(text))
