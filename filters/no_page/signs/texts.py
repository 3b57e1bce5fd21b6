"""Words of short texts, by reason: expressions that are searched for, in many languages."""

from __future__ import annotations

TEXTS = {
    "challenge": r"""
checking your browser before ; (?:verify|verifying|confirm|prove)(?: that)? you(?:'re| are) (?:not a (?:ro)?bot|(?:a
)?human) ; needs to review the security of your connection ; complete the (?:security check|captcha|challenge)(?:
below)? (?:to|before) ; please (?:solve|complete) (?:the|this) captcha ; unusual traffic from your (?:computer
)?network ; making sure you(?:'re| are) not a bot ; as you were browsing,? something about your browser made us think
; press (?:&|and) hold to confirm ; enter the characters you see ; ihr browser wird (?:überprüft|geprüft) ; n'êtes pas
un robot ; que eres (?:un )?humano ; comprobando (?:tu|su) navegador ; que você é humano ; di essere (?:un )?uman ;
dat (?:u|je) een mens bent ; nie jesteś robotem ; (?:вы|что вы) не (?:являетесь )?робот ; проверя(?:ем|ется) (?:ваш
)?браузер ; похожи на автоматические ; robot olmadığınızı ; ロボットではないこと ; ブラウザを(?:確認|チェック)して ;
(?:确认|验证|证明)您?(?:是真人|不是机器人) ; (?:确认|驗證|證明)您?(?:是真人|不是機器人) ; 请完成(?:安全|下[列方])?验证
; 로봇이 아님을 ; أنك (?:لست روبوت|إنسان) ; التحقق من (?:أنك|متصفحك)
""",
    "blocked": r"""
you don't have permission to access ; you have been blocked ; (?:your (?:ip|access|request)|this (?:ip|request|
connection))(?: address)?(?: \S+)? (?:has been|was|is) (?:temporarily |permanently )?(?:blocked|banned|denied|
rejected|flagged|limited) ; using a security service to protect itself ; not available in your (?:country|region|
location|area|territory) ; not (?:currently )?available (?:to visitors|to users|for users)? ?(?:in|from) (?:most
european|the european|your) ; you have sent (?:too many|a lot of) requests ; the requested url was rejected ; request
blocked ; unavailable (?:for|due to) legal reasons ; haben keine berechtigung ; zugriff (?:auf diese seite )?(?:wurde
|ist )?(?:verweigert|gesperrt|blockiert) ; in (?:ihrem|deinem) land nicht verfügbar ; zu viele anfragen ; vous n'avez
pas (?:la permission|l'autorisation|accès) ; no tienes? permisos? para ; no está disponible en (?:tu|su) (?:país|
región) ; não tem permissão para ; non è disponibile nel tuo paese ; u heeft geen (?:toegang|toestemming) ; nie masz
(?:uprawnień|dostępu) ; доступ к (?:сайту|ресурсу|странице|информационному ресурсу) (?:был )?(?:запрещ[её]н|ограничен|
заблокирован|закрыт) ; アクセス(?:は|が)(?:拒否|禁止|制限|ブロック) ; お住まいの(?:国|
地域)(?:から)?(?:で)?は(?:ご)?(?:利用|視聴|覧|アクセス) ; 您的(?:访问|ip|请求)已?被(?:拦截|阻断|拒绝|禁止|封禁|限制) ;
غير (?:متاح|متوفر) في (?:بلدك|منطقتك) ; ليس لديك (?:إذن|صلاحية)
""",
    "login_wall": r"""
(?:you (?:must|need to|have to|should) (?:be|first)?|please) ?(?:log(?:ged)?[- ]?in|sign(?:ed)?[- ]?in|login)(?:to|
,| ) ; (?:log|sign) ?in (?:is required|to (?:continue|view|access|see|your account)) ; forgot(?:ten)? (?:your |my
)?password ; this (?:site|page|blog|content) is (?:private|password[- ]protected) ; passwort vergessen ; mot de passe
oublié ; (?:olvidaste|olvidó|olvidado|he olvidado) (?:tu|su|la|mi) contraseña ; esquec(?:eu|i)(?: a| sua| minha)?
senha ; password dimenticata ; wachtwoord vergeten ; nie pamiętasz hasła ; забыли пароль ; (?:необходимо|нужно|
требуется|пожалуйста,?) (?:войти|авториз|войдите) ; şifre(?:ni|nizi|mi) (?:mi )?unut ; パスワードを(?:お忘れ|忘れた) ;
ログイン(?:が必要|してください) ; 忘记密码 ; 请先?登录 ; 登录后(?:才能|可) ; 비밀번호(?:를)? ?(?:찾기|잊) ; 로그인이
필요 ; نسيت كلمة (?:المرور|السر)
""",
    "consent_wall": r"""
(?:accept|reject|allow|agree to) (?:all|and continue|and close|cookies) ; manage (?:settings|options|preferences|
choices|cookies) ; our (?:\d+ )?partners ; (?:i am|i'm|are you|you are|you must be|at least|over) (?:over |at least |
of legal |a minimum of )?(?:18|21|legal (?:age|drinking age)) ; alle(?:s)? akzeptieren ; alle ablehnen ; zustimmen ;
mindestens 18 ; über 18 ; tout (?:accepter|refuser) ; nos (?:\d+ )?partenaires ; plus de 18 ans ; aceptar (?:todo|
todas|y) ; rechazar (?:todo|todas) ; mayor de (?:18|edad) ; aceitar (?:tudo|todos) ; rejeitar ; mais de 18 ; accetta
(?:tutto|tutti|e) ; rifiuta ; alles (?:accepteren|weigeren) ; zaakceptuj ; akceptuj ; odrzuć ; принять (?:все|и) ;
отклонить ; мне (?:уже )?(?:есть )?18 ; 18 лет ; tümünü (?:kabul|reddet) ; (?:すべて)?(?:同意|許可|拒否)(?:する|して)
; (?:18|20)歳 ; (?:全部|同意|接受)(?:接受|拒绝|并继续|並繼續|全部) ; (?:满|滿|年满)?18(?:周)?(?:岁|歲) ; (?:قبول|رفض)
الكل
""",
    "parked": r"""
domain(?: name)?(?: [\w.-]{3,80})? (?:is|may be|could be) (?:for sale|available for (?:sale|purchase)|parked) ; buy
(?:this|the) domain ; make an offer (?:on|for) this domain ; this domain (?:is|has been) (?:parked|registered (?:at|
with|by|through)|recently registered) ; parked free,? courtesy of ; domain (?:name )?(?:has )?expired ; related
searches\b.*privacy policy ; the sponsored listings displayed above ; is this your domain ; get this domain ;
die(?:se)? domain (?:jetzt )?kaufen ; domaine (?:à vendre|en vente|(?:est|a) (?:à vendre|en vente|expiré|réservé|
enregistré)) ; acheter ce (?:nom de )?domaine ; dominio (?:está|ha|ha sido) (?:en venta|a la venta|caducado|expirado|
aparcado|registrado) ; comprar este dom[ií]nio ; domínio (?:está (?:à venda|estacionado|registrado)|expirou) ; dominio
è (?:in vendita|scaduto|stato registrato|parcheggiato) ; acquista(?:re)? questo dominio ; domein(?:naam)? (?:is
)?(?:te koop|verlopen|geregistreerd|gereserveerd|geparkeerd) ; domena (?:jest )?(?:na sprzedaż|do kupienia|
zaparkowana|wygasła|została (?:zarejestrowana|zaparkowana|utrzymywana)) ; kup (?:tę )?domenę ; домен (?:[\w.-]{3,80}
)?(?:прода[её]тся|выставлен на продажу|припаркован|зарегистрирован) ; (?:купить|приобрести) (?:этот |данный )?домен ;
ドメインは(?:販売中|売り出し中|.{1,12}で取得されています) ; 域名(?:可以?|正在)?(?:出售|转让|待售) ; 购买(?:此|该)?域名
; النطاق (?:معروض )?للبيع ; شراء هذا (?:النطاق|الدومين)
""",
    "maintenance": r"""
(?:down|closed|unavailable|offline) for (?:scheduled |planned |routine |a bit of |some )?maintenance ; (?:site|
website|page|we) (?:is|are) (?:currently )?(?:under construction|being (?:updated|upgraded|rebuilt)) ; (?:coming|
launching|opening) soon ; account (?:has been |is )?suspended ; (?:website|site|page|service) (?:is |has been
)?(?:temporarily |currently )?(?:suspended|unavailable|offline|disabled) ; contact your hosting provider ; briefly
unavailable ; error establishing a database connection ; please (?:try again|check back|come back) (?:later|soon|
shortly|in a few) ; something (?:awesome|new|great|exciting) is (?:coming|on its way) ; wartungsarbeiten ; (?:im
aufbau|in wartung|gewartet) ; hier entsteht ; bald wieder (?:da|für sie|online) ; en (?:cours de )?(?:maintenance|
construction|travaux) ; revenez (?:plus tard|bientôt) ; de retour (?:bientôt|très vite|dans) ; en (?:construcción|
mantenimiento) ; vuelv[ae] (?:a intentarlo )?(?:más tarde|pronto) ; em (?:construção|manutenção) ; voltaremos ; in
(?:manutenzione|costruzione|allestimento) ; torneremo ; in (?:onderhoud|aanbouw) ; probeer het later ; (?:przerwa|
prace) (?:techniczn|serwisow|konserwacyjn) ; w budowie ; (?:zapraszamy|wrócimy|spróbuj) (?:wkrótce|później|niedługo) ;
(?:технические|профилактические|плановые|регламентные) работы ; сайт (?:временно )?(?:недоступен|закрыт|отключ[её]н|
приостановлен|находится) ; (?:зайдите|попробуйте|вернемся|вернёмся) (?:позже|скоро|в ближайшее) ; bakım (?:çalışma|
nedeniyle|aşamasında) ; メンテナンス中 ; (?:しばらく|のち)(?:ほど|して)(?:から)?(?:、)?(?:再度|もう一度|アクセス) ;
(?:维护|建设|升级)中 ; 正在(?:维护|建设|升级|进行) ; 稍后(?:再|访问|重试) ; 점검 (?:중|후) ; تحت (?:الصيانة|الإنشاء|
التطوير) ; سنعود
""",
    "default_page": r"""
if you (?:can )?see this page,? (?:the )?(?:nginx|openresty|apache|tengine|web ?server|caddy|openlitespeed|lighttpd) ;
this is the default (?:web ?page|welcome page|index page|server page) ; used to test the (?:correct|proper) operation
of the ; this page is (?:generated|served|autogenerated) by (?:plesk|cpanel|a default|directadmin|vesta|hestia) ;
you(?:'ve| have) successfully installed tomcat
""",
    "soft_404": r"""
(?:page|content|file|article|url|resource|document|post|link)(?: that)?(?: you(?:'re| are| were|'ve| have)? (?:looking
for|requested|trying to (?:reach|view|access|visit)|followed|clicked|tried|entered))?,? (?:(?:was |is |could |
can)?(?:not |n't )(?:be )?found|(?:couldn't|can't|wasn't) (?:be )?found|does(?: not|n't) exist|no longer exists?|
is(?:n't| not| no longer) (?:available|here)|(?:may |might |could |seems to )?(?:has |have )been (?:moved|removed|
deleted|renamed)|(?:is|was) (?:missing|gone|removed|deleted)) ; (?:can't|cannot|couldn't|can not|could not|unable to|
not able to) (?:seem to )?(?:find|locate) (?:the|that|this|what) (?:page|content|article|resource|file|you) ; nothing
(?:was found|to see here) ; was not found on this server ; the page you (?:requested|are looking for|were looking for)
; (?:maybe|perhaps|why not) try (?:a search|one of the links|searching) ; error 404 ; (?:seite|datei|url|adresse|
inhalt|dokument)[^.\n]{0,40}(?:nicht (?:gefunden|vorhanden|mehr (?:verfügbar|vorhanden)|verfügbar)|existiert(?:
leider)? nicht|wurde gelöscht) ; (?:page|adresse|ressource)[^.\n]{0,40}(?:introuvable|n'existe (?:pas|plus)|n'a
(?:pas|pu)[^.\n]{0,20}trouvée?|été (?:supprimée|déplacée)|n'est plus disponible) ; (?:página|pagina|dirección|url|
contenido)[^.\n]{0,40}(?:no (?:existe|se encuentra|está disponible|pudo encontrar|(?:ha sido|fue|se ha) encontrad)|ya
no existe|ha sido eliminad) ; (?:página|endereço|conteúdo)[^.\n]{0,40}(?:não (?:existe|está disponível|(?:foi|pode
ser) encontrad)|foi removid) ; pagina[^.\n]{0,40}(?:non (?:esiste|è disponibile|è stata trovata)|è stata rimossa) ;
pagina[^.\n]{0,40}(?:bestaat niet|niet gevonden|niet meer beschikbaar|verwijderd) ; (?:strona|stron[yę]|
adres)[^.\n]{0,40}(?:nie (?:istnieje|została (?:znalez|odnalez)|jest dostępn)|została usunięt) ; (?:страниц[аыу]|
адрес|документ|материал)[^.\n]{0,40}(?:не (?:найден|существует)|удал[её]н|нет на сайте) ; (?:sayfa|
sayfayı)[^.\n]{0,40}(?:bulunamad|mevcut değil|kaldırıl) ; (?:ページ|url|記事)[^。\n]{0,20}(?:見つかりません|
存在し(?:ない|ません)|削除され) ; (?:页面|网页|頁面|網頁|文章|地址)[^。\n]{0,10}(?:不存在|找不到|已被?(?:删除|刪除)|
未找到|失效) ; 페이지[^.\n]{0,20}(?:찾을 수 없|존재하지 않|삭제되) ; (?:الصفحة|الرابط)[^.\n]{0,40}(?:غير موجود|لم تعد
موجود|تم حذف)
""",
}
