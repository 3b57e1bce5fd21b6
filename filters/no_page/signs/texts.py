"""Words of short texts, by reason: expressions that are searched for, in many languages."""

from __future__ import annotations

TEXTS = {
    "challenge": r"""
checking your browser before ; enable javascript and cookies to continue ; (?:verify|verifying|confirm|prove)(?:
that)? you(?:'re| are) (?:not a (?:ro)?bot|(?:a )?human) ; needs to review the security of your connection ; checking
if the site connection is secure ; complete the (?:security check|captcha|challenge)(?: below)? (?:to|before) ; please
(?:solve|complete) (?:the|this) captcha ; you have been (?:detected as|identified as) a bot ; unusual traffic from
your (?:computer )?network ; we think you (?:might be|are) (?:a )?(?:ro)?bot ; making sure you(?:'re| are) not a bot ;
as you were browsing,? something about your browser made us think ; press (?:&|and) hold to confirm ; browser will
redirect to your requested content ; this process is automatic ; verifies that you are not a bot ; requires javascript
to work,? please enable javascript ; javascript is (?:disabled|required)[^.\n]*(?:verify|proceed|human|security) ;
enter the characters you see ; to discuss automated access ; proof[- ]of[- ]work ; ihr browser wird (?:überprüft|
geprüft) ; kein roboter ; dass sie ein mensch sind ; javascript und cookies,? um fortzufahren ; vérif(?:iez|ier|ions)
que vous (?:êtes|n'êtes) ; n'êtes pas un robot ; javascript et les cookies pour continuer ; votre navigateur avant ;
votre navigateur est en cours de vérification ; no eres un robot ; que eres (?:un )?humano ; que (?:es|usted es) (?:un
)?humano ; comprobando (?:tu|su) navegador ; javascript y las cookies para continuar ; não é um robô ; que você é
humano ; verificando (?:o )?seu navegador ; non sei un robot ; di essere (?:un )?uman ; verifica del (?:tuo )?browser
; (?:u|je) geen robot bent ; dat (?:u|je) een mens bent ; nie jesteś robotem ; jesteś człowiekiem ; (?:вы|что вы) не
(?:являетесь )?робот ; что вы человек ; запросы,? отправленные вы,? а не робот ; проверя(?:ем|ется) (?:ваш )?браузер ;
включите javascript и (?:cookies?|файлы cookie) ; похожи на автоматические ; robot olmadığınızı ; insan olduğunuzu ;
ロボットではないこと ; 人間であることを(?:確認|証明) ; ブラウザを(?:確認|チェック)して ; javascriptとcookieを有効に ;
(?:确认|验证|证明)您?(?:是真人|不是机器人) ; 正在检查您的浏览器 ; (?:确认|驗證|證明)您?(?:是真人|不是機器人) ;
请完成(?:安全|下[列方])?验证 ; 启用 ?javascript ?和 ?cookie ; 로봇이 아님을 ; 사람인지 확인 ; أنك (?:لست روبوت|إنسان)
; التحقق من (?:أنك|متصفحك)
""",
    "blocked": r"""
you don't have permission to access ; you do not have (?:permission|access) to (?:access|view|visit)? ; you have been
blocked ; (?:your (?:ip|access|request)|this (?:ip|request|connection))(?: address)?(?: \S+)? (?:has been|was|is)
(?:temporarily |permanently )?(?:blocked|banned|denied|rejected|flagged|limited) ; blocked by (?:our |the |a
)?(?:security|firewall|network|administrator|mod_security|wordfence|web application) ; using a security service to
protect itself ; not available in your (?:country|region|location|area|territory) ; not (?:currently )?available (?:to
visitors|to users|for users)? ?(?:in|from) (?:most european|the european|your) ; you have sent (?:too many|a lot of)
requests ; too many requests ; rate limit (?:has been )?exceeded ; access (?:to this (?:page|site|website|resource)
)?(?:is |has been )(?:denied|forbidden|restricted|blocked) ; the requested url was rejected ; request blocked ;
incident id ; unavailable (?:for|due to) legal reasons ; owner of this website .*has banned ; temporarily (?:blocked|
limited|restricted) (?:access|your) ; haben keine berechtigung ; zugriff (?:auf diese seite )?(?:wurde |ist
)?(?:verweigert|gesperrt|blockiert) ; in (?:ihrem|deinem) land nicht verfügbar ; zu viele anfragen ; n'avez pas (?:la
permission|l'autorisation|accès) ; n'est pas (?:disponible|accessible) dans votre (?:pays|région) ; accès (?:à cette
page |à ce site )?(?:vous )?(?:a été |est )(?:refusé|bloqué|interdit) ; no tienes? permiso ; no está disponible en
(?:tu|su) (?:país|región) ; (?:tu|su) (?:ip|acceso|solicitud) (?:ha sido|fue|está) (?:bloquead|denegad|restringid) ;
acceso (?:ha sido |está )(?:denegado|bloqueado|restringido) ; não tem permissão ; não está disponível (?:no seu país|
na sua região) ; (?:acesso|ip) (?:foi|está) (?:bloquead|negad) ; non (?:hai|dispone|disponi)(?: dei?l?)? permess ; non
è disponibile nel tuo paese ; (?:geen toegang|geen toestemming) ; niet beschikbaar in (?:uw|jouw) (?:land|regio) ; nie
masz (?:uprawnień|dostępu) ; niedostępn\pL{1,3} w (?:twoim kraju|twoim regionie) ; доступ (?:к [а-яё ]+ )?(?:был
)?(?:запрещ[её]н|ограничен|заблокирован|закрыт) ; недоступ(?:ен|на|но|ны) в ваш(?:ем|ей) (?:стране|регионе) ; слишком
много запросов ; erişim(?:iniz)? engellen ; ülkenizde (?:kullanılamıyor|mevcut değil) ; アクセス(?:は|が)(?:拒否|禁止|
制限|ブロック) ; お住まいの(?:国|地域)(?:から)?(?:で)?は(?:ご)?(?:利用|視聴|覧|アクセス) ; 権限がありません ; (?:您|
你)(?:的访问|的ip|的请求)?(?:没有权限|已?被(?:拦截|阻断|拒绝|禁止|封禁|限制)) ; 所在(?:的)?(?:国家|地区|區域|地區) ;
접근(?:이|을) (?:차단|거부|제한) ; غير (?:متاح|متوفر) في (?:بلدك|منطقتك) ; ليس لديك (?:إذن|صلاحية) ; تم (?:حظر|رفض)
""",
    "login_wall": r"""
(?:you (?:must|need to|have to|should) (?:be|first)?|please) ?(?:log(?:ged)?[- ]?in|sign(?:ed)?[- ]?in|login)(?:to|
,| ) ; (?:log|sign) ?in (?:is required|to (?:continue|view|access|see|your account)) ; (?:members|subscribers|
registered users)[- ]only ; only (?:available|visible|accessible) (?:to|for) (?:registered|logged) ; forgot(?:ten)?
(?:your |my )?password ; this (?:site|page|blog|content) is (?:private|password[- ]protected) ; (?:bitte )?melden sie
sich an ; (?:müssen|musst) (?:sie |du )?(?:sich |dich )?(?:eingeloggt|angemeldet|anmelden|einloggen) ; passwort
vergessen ; (?:devez|veuillez) (?:être connecté|vous (?:connecter|identifier)) ; mot de passe oublié ; (?:debes?|
tienes? que|necesitas?) iniciar sesión ; (?:olvidaste|olvidó|olvidado|he olvidado) (?:tu|su|la|mi) contraseña ;
¿?olvid(?:ó|aste) su contraseña ; esquec(?:eu|i)(?: a| sua| minha)? senha ; (?:precisa|deve) (?:estar logado|fazer
(?:o )?login|iniciar sessão) ; (?:devi|è necessario|bisogna) (?:effettuare|accedere|eseguire|essere) ; password
dimenticata ; hai dimenticato la password ; wachtwoord vergeten ; (?:moet|dient) (?:u |je )?(?:zich )?(?:ingelogd|
inloggen|aan) ; nie pamiętasz hasła ; zapomnia\pL{2,5} hasła ; (?:musisz się|aby .*) zalog ; zaloguj się,? aby ;
забыли пароль ; (?:необходимо|нужно|требуется|пожалуйста,?) (?:войти|авториз|войдите) ; (?:только )?(?:для|
авторизованн|зарегистрированн)[а-яё]* пользовател ; şifre(?:ni|nizi|mi) (?:mi )?unut ; giriş yapmanız gerek ;
パスワードを(?:お忘れ|忘れた) ; ログイン(?:が必要|してください) ; 忘记密码 ; 忘記密碼 ; 请先?登录 ; 登录后(?:才能|可)
; 請先登入 ; 비밀번호(?:를)? ?(?:찾기|잊) ; 로그인이 필요 ; نسيت كلمة (?:المرور|السر) ; (?:يجب|يرجى|الرجاء) (?:عليك
)?تسجيل الدخول
""",
    "consent_wall": r"""
(?:accept|reject|allow|agree to) (?:all|and continue|and close|cookies) ; i (?:agree|accept|do not accept) ; manage
(?:settings|options|preferences|choices|cookies) ; our (?:\d+ )?partners ; (?:i am|i'm|are you|you are|you must be|at
least|over) (?:over |at least |of legal |a minimum of )?(?:18|21|legal (?:age|drinking age)) ; alle(?:s)? akzeptieren
; akzeptieren und weiter ; alle ablehnen ; zustimmen ; mindestens 18 ; über 18 ; tout (?:accepter|refuser) ; accepter
et (?:continuer|fermer) ; nos (?:\d+ )?partenaires ; plus de 18 ans ; majeur ; aceptar (?:todo|todas|y) ; rechazar
(?:todo|todas) ; mayor de (?:18|edad) ; aceitar (?:tudo|todos) ; rejeitar ; mais de 18 ; maior de (?:18|idade) ;
accetta (?:tutto|tutti|e) ; rifiuta ; maggiorenne ; almeno 18 ; alles (?:accepteren|weigeren) ; akkoord ; 18 jaar ;
zaakceptuj ; akceptuj ; odrzuć ; ukończone 18 ; mam 18 ; принять (?:все|и) ; отклонить ; мне (?:уже )?(?:есть )?18 ;
18 лет ; tümünü (?:kabul|reddet) ; 18 yaş ; (?:すべて)?(?:同意|許可|拒否)(?:する|して) ; (?:18|20)歳 ; (?:全部|同意|
接受)(?:接受|拒绝|并继续|並繼續|全部) ; (?:满|滿|年满)?18(?:周)?(?:岁|歲) ; 모두 (?:동의|수락|거부) ; 19세 ; (?:قبول|
رفض) الكل ; 18 (?:عام|سنة) ; أوافق
""",
    "parked": r"""
(?:domain|domain name|website|site)(?: [\w.-]{3,80})? (?:is|may be|could be) (?:for sale|available for (?:sale|
purchase)|parked) ; buy (?:this|the) domain ; inquire about this domain ; make an offer (?:on|for) this domain ;
interested in (?:buying |purchasing )?this domain ; this (?:domain|page|web page) (?:is|has been) (?:parked|registered
(?:at|with|by|through)|recently registered) ; parked free,? courtesy of ; domain (?:name )?(?:has )?expired ; related
(?:searches|links)\b.*(?:privacy policy|domain) ; the sponsored listings displayed above ; is this your domain ; renew
(?:it|your domain) now ; get this domain ; domain is registered at ; registered (?:on behalf of|for) (?:a|its)
(?:customer|client) ; domain (?:steht |ist )?(?:hier )?(?:zu verkaufen|zum verkauf|zu kaufen|geparkt|registriert) ;
domain (?:jetzt )?kaufen ; domaine (?:est )?(?:à vendre|en vente|expiré|réservé|a expiré|enregistré) ; acheter ce
(?:nom de )?domaine ; dominio (?:está )?(?:en venta|a la venta|caducado|ha caducado|ha expirado|aparcado|registrado) ;
comprar este dom[ií]nio ; domínio (?:está )?(?:à venda|expirou|estacionado|registrado) ; dominio (?:è )?(?:in vendita|
scaduto|stato registrato|parcheggiato) ; acquista(?:re)? questo dominio ; domein(?:naam)? (?:is )?(?:te koop|verlopen|
geregistreerd|gereserveerd|geparkeerd) ; domena (?:jest )?(?:na sprzedaż|do kupienia|zaparkowana|wygasła|została
(?:zarejestrowana|zaparkowana|utrzymywana)) ; kup (?:tę )?domenę ; домен (?:[\w.-]{3,80} )?(?:прода[её]тся|выставлен
на продажу|припаркован|зарегистрирован) ; (?:купить|приобрести) (?:этот |данный )?домен ; alan adı (?:satılık|park) ;
ドメイン(?:は|を)(?:販売|購入|取得) ; ドメイン名は、?お名前 ; 域名(?:可以?|正在)?(?:出售|转让|待售) ; 购买(?:此|
该)?域名 ; 도메인(?:을|은)? (?:구매|판매) ; النطاق (?:معروض )?للبيع ; شراء هذا (?:النطاق|الدومين)
""",
    "maintenance": r"""
(?:down|closed|unavailable|offline) for (?:scheduled |planned |routine |a bit of |some )?maintenance ; (?:undergoing|
performing|under|carrying out) (?:some )?(?:scheduled|planned|routine|essential|necessary)? ?maintenance ; (?:site|
website|page|we) (?:is|are) (?:currently )?(?:under construction|being (?:updated|upgraded|rebuilt)) ; will be
(?:right )?back (?:soon|shortly|online|up) ; (?:coming|launching|opening) soon ; account (?:has been |is )?suspended ;
(?:website|site|page|service) (?:is |has been )?(?:temporarily |currently )?(?:suspended|unavailable|offline|disabled)
; contact your hosting provider ; briefly unavailable ; error establishing a database connection ; please (?:try
again|check back|come back) (?:later|soon|shortly|in a few) ; working on (?:our|a) new (?:web)?site ; something
(?:awesome|new|great|exciting) is (?:coming|on its way) ; wartungsarbeiten ; (?:im aufbau|in wartung|gewartet) ; hier
entsteht ; (?:versuchen|schauen) sie es (?:später|in kürze) ; bald wieder (?:da|für sie|online) ; en (?:cours de
)?(?:maintenance|construction|travaux) ; revenez (?:plus tard|bientôt) ; de retour (?:bientôt|très vite|dans) ; en
(?:construcción|mantenimiento) ; vuelv[ae] (?:a intentarlo )?(?:más tarde|pronto) ; estaremos de vuelta ; em
(?:construção|manutenção) ; voltaremos ; volte mais tarde ; in (?:manutenzione|costruzione|allestimento) ; torneremo ;
riprova(?:re)? più tardi ; (?:onderhoud|in aanbouw) ; probeer het later ; (?:przerwa|prace) (?:techniczn|serwisow|
konserwacyjn) ; w budowie ; (?:zapraszamy|wrócimy|spróbuj) (?:wkrótce|później|niedługo) ; (?:технические|
профилактические|плановые|регламентные) работы ; сайт (?:временно )?(?:недоступен|закрыт|отключ[её]н|приостановлен|
находится) ; (?:зайдите|попробуйте|вернемся|вернёмся) (?:позже|скоро|в ближайшее) ; bakım (?:çalışma|nedeniyle|
aşamasında) ; yapım aşamasında ; メンテナンス ; (?:しばらく|のち)(?:ほど|して)(?:から)?(?:、)?(?:再度|もう一度|
アクセス) ; (?:维护|建设|升级)中 ; 正在(?:维护|建设|升级|进行) ; 稍后(?:再|访问|重试) ; 維護中 ; 점검 ; (?:الصيانة|
الإنشاء|التطوير) ; سنعود
""",
    "default_page": r"""
if you (?:can )?see this page,? (?:the )?(?:nginx|openresty|apache|tengine|web ?server|caddy|openlitespeed|lighttpd) ;
(?:web ?server|server) software is (?:running|installed) ; this is the default (?:web ?page|welcome page|index page|
page|site|server page|home page|vhost) ; default (?:web)?page for this (?:server|domain) ; used to test the
(?:correct|proper) operation of the ; no content has been added,? yet ; replace this (?:file|page)(?: \(located|
.*index) ; you may now add content to (?:this )?directory ; you(?:'re| are) seeing this (?:page )?because ; if you are
the (?:owner|administrator) of this (?:website|site|domain) ; apache is functioning normally ; successfully
(?:installed|deployed|created).*(?:tomcat|server|site|working) ; this page is (?:generated|served|autogenerated) by
(?:plesk|cpanel|a default|directadmin|vesta|hestia) ; you(?:'ve| have) successfully installed tomcat ; upload your
(?:website|files|site) ; parent directory ; last modified size ; welcome to wordpress\. this is your first post ; you
do not have any content ; document ?root ; public_html ; /var/www/html
""",
    "soft_404": r"""
(?:page|content|file|article|url|resource|document|post|link)(?: that)?(?: you(?:'re| are| were|'ve| have)? (?:looking
for|requested|trying to (?:reach|view|access|visit)|followed|clicked|tried|entered))?,? (?:(?:was |is |could |
can)?(?:not |n't )(?:be )?found|(?:couldn't|can't|wasn't) (?:be )?found|does(?: not|n't) exist|no longer exists?|
is(?:n't| not| no longer) (?:available|here)|(?:may |might |could |seems to )?(?:has |have )been (?:moved|removed|
deleted|renamed)|(?:is|was) (?:missing|gone|removed|deleted)) ; (?:can't|cannot|couldn't|can not|could not|unable to|
not able to) (?:seem to )?(?:find|locate) (?:the|that|this|what) (?:page|content|article|resource|file|you) ; nothing
(?:was found|to see here) ; was not found on this server ; the page you (?:requested|are looking for|were looking for)
; (?:maybe|perhaps|why not) try (?:a search|one of the links|searching) ; error 404 ; 404 (?:error|not found|page) ;
(?:seite|datei|url|adresse|inhalt|dokument)[^.\n]{0,40}(?:nicht (?:gefunden|vorhanden|mehr (?:verfügbar|vorhanden)|
verfügbar)|existiert(?: leider)? nicht|wurde gelöscht) ; (?:page|adresse|ressource)[^.\n]{0,40}(?:introuvable|n'existe
(?:pas|plus)|n'a (?:pas|pu)[^.\n]{0,20}trouvée?|été (?:supprimée|déplacée)|n'est plus disponible) ; (?:página|pagina|
dirección|url|contenido)[^.\n]{0,40}(?:no (?:existe|se encuentra|está disponible|pudo encontrar|(?:ha sido|fue|se ha)
encontrad)|ya no existe|ha sido eliminad) ; (?:página|endereço|conteúdo)[^.\n]{0,40}(?:não (?:existe|está disponível|
(?:foi|pode ser) encontrad)|foi removid) ; pagina[^.\n]{0,40}(?:non (?:esiste|è disponibile|è stata trovata)|è stata
rimossa) ; pagina[^.\n]{0,40}(?:bestaat niet|niet gevonden|niet meer beschikbaar|verwijderd) ; (?:strona|stron[yę]|
adres)[^.\n]{0,40}(?:nie (?:istnieje|została (?:znalez|odnalez)|jest dostępn)|została usunięt) ; (?:страниц[аыу]|
адрес|документ|материал)[^.\n]{0,40}(?:не (?:найден|существует)|удал[её]н|нет на сайте) ; (?:sayfa|
sayfayı)[^.\n]{0,40}(?:bulunamad|mevcut değil|kaldırıl) ; (?:ページ|url|記事)[^。\n]{0,20}(?:見つかりません|
存在し(?:ない|ません)|削除され) ; (?:页面|网页|頁面|網頁|文章|地址)[^。\n]{0,10}(?:不存在|找不到|已被?(?:删除|刪除)|
未找到|失效) ; 페이지[^.\n]{0,20}(?:찾을 수 없|존재하지 않|삭제되) ; (?:الصفحة|الرابط)[^.\n]{0,40}(?:غير موجود|لم تعد
موجود|تم حذف)
""",
}
