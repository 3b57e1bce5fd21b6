"""Words of titles and headings, by reason: expressions that match a whole segment of them, in many languages."""

from __future__ import annotations

TITLES = {
    "challenge": r"""
just a moment ; (?:one|a) moment,? please ; please wait ; checking your browser.* ; verifying your (?:browser|
connection) ; verify(?:ing)?(?: that)? you(?:'re| are) (?:a )?(?:not a (?:ro)?bot|human) ; are you (?:a )?(?:human|
(?:ro)?bot) ; robot or human ; robot check ; bot (?:check|verification|protection) ; human verification ; browser
(?:check|verification) ; (?:vercel )?security (?:check|checkpoint|verification) ; security challenge ; pardon our
interruption ; client challenge ; making sure you(?:'re| are) not a bot ; captcha(?: challenge| required| check)? ;
ddos-guard ; ddos protection ; access to this page has been denied ; you are being redirected ; validation request ;
challenge validation ; human test ; i am not a robot ; press (?:&|and) hold ; (?:nur )?einen (?:kleinen )?moment(?:
bitte)? ; bitte warten ; sicherheits(?:überprüfung|prüfung|abfrage|check) ; browser ?(?:wird )?überprüf(?:t|ung) ;
sind sie ein (?:mensch|roboter) ; (?:un |juste un )instant ; un moment ; veuillez patienter ; (?:vérification|
contrôle) (?:de sécurité|du navigateur|de votre navigateur|en cours) ; êtes-vous (?:un )?(?:robot|humain) ; (?:solo
)?un momento(?: por favor)? ; espere(?: un momento)?,? por favor ; (?:verificación|comprobación) (?:de seguridad|del
navegador|humana) ; comprobando (?:tu|su) navegador ; ¿?eres (?:un )?(?:robot|humano) ; (?:só )?um momento ;
aguarde(?: um momento)? ; verificação (?:de segurança|do navegador|humana) ; verificando (?:o )?seu navegador ; un
attimo(?: di pazienza)? ; (?:solo )?un momento ; attendere prego ; (?:verifica|controllo) (?:di sicurezza|del browser)
; non sono un robot ; een (?:ogenblik|moment)(?: geduld)? ; (?:veiligheids|beveiligings)controle ; (?:chwileczkę|
proszę czekać) ; (?:weryfikacja|kontrola) (?:bezpieczeństwa|przeglądarki) ; nie jestem robotem ; (?:один|одну)
(?:момент|минут[уы]|секунду) ; (?:пожалуйста,? )?подождите ; проверка (?:браузера|безопасности|вашего браузера|
подключения).* ; (?:подтвердите,? что )?(?:вы|я) не робот ; вы человек ; капча ; (?:ой,? )?(?:капча|проверка) ; bir
dakika(?: lütfen)? ; lütfen bekleyin ; güvenlik (?:kontrolü|doğrulaması) ; ett ögonblick ; moment prosím ; зачекайте ;
(?:しばらく|少々)?お待ちください ; (?:セキュリティ|ブラウザ) ?(?:の)?(?:チェック|確認|検証).* ;
(?:私は)?ロボットではありません ; アクセス確認 ; 请(?:稍候|稍等|等待) ; 請(?:稍候|稍等) ; (?:安全|人机|浏览器|
访问)(?:检查|验证|校验) ; (?:安全|真人)(?:檢查|驗證) ; 正在(?:检查|验证)您的浏览器.* ; 滑动验证(?:页面)? ;
验证码(?:拦截)? ; 잠시만 기다(?:리십시오|려 ?주세요) ; 보안 (?:확인|검사) ; 로봇이 아닙니다 ; لحظة(?: واحدة)?(?: من
فضلك)? ; (?:التحقق|فحص) (?:الأمني|أمني|من المتصفح|من الأمان) ; يرجى الانتظار
""",
    "blocked": r"""
access (?:is |was |has been )?(?:denied|forbidden|blocked|restricted) ; forbidden ; (?:request|ip|traffic|access)
(?:was |has been )?(?:blocked|rejected) ; (?:sorry,? )?you have been blocked ; blocked ; too many requests ; rate
limit(?:ed| exceeded)? ; unavailable for legal reasons ; not (?:authori[sz]ed|allowed) ; sucuri website firewall(?:
access denied)? ; web application firewall ; fortigate application control ; web page blocked ; (?:this )?(?:content|
site|page|service|website) (?:is )?(?:not available|unavailable) in your (?:country|region|location|area) ; (?:request
)?could not be satisfied ; the request could not be satisfied ; requested url was rejected ; request rejected ;
permission denied ; geo(?:-| )?block(?:ed|ing)? ; your ip (?:address )?(?:has been|is) (?:blocked|banned) ; your
access to this site has been limited ; service unavailable in your region ; unavailable in your (?:country|region) ;
451:? .*legal.* ; restricted access ; bad bot ; request unsuccessful ; zugriff (?:wurde )?(?:verweigert|blockiert|
gesperrt|nicht erlaubt) ; zugang (?:verweigert|gesperrt) ; verboten ; (?:sie wurden|anfrage) (?:blockiert|gesperrt) ;
zu viele anfragen ; accès (?:refusé|interdit|bloqué|restreint) ; interdit ; trop de requêtes ; requête bloquée ; vous
avez été bloqué ; acceso (?:denegado|prohibido|bloqueado|restringido) ; prohibido ; demasiadas (?:solicitudes|
peticiones) ; acesso (?:negado|proibido|bloqueado|restrito) ; proibido ; muitas (?:solicitações|requisições) ; accesso
(?:negato|vietato|bloccato) ; vietato ; troppe richieste ; toegang (?:geweigerd|geblokkeerd|verboden) ; te veel
verzoeken ; dostęp (?:zabroniony|zablokowany|odmówiony) ; brak dostępu ; odmowa dostępu ; zbyt wiele (?:żądań|zapytań)
; доступ (?:к [а-яё ]{1,30} )?(?:запрещ[её]н|ограничен|заблокирован|закрыт) ; запрещено ; слишком много запросов ;
(?:ваш )?ip(?:-адрес)? заблокирован ; доступ заборонено ; erişim (?:engellendi|reddedildi|yasaklandı) ; çok fazla
istek ; åtkomst nekad ; přístup (?:odepřen|zakázán) ; アクセス(?:が)?(?:拒否|禁止|制限)(?:されました|されています)? ;
アクセスできません ; 閲覧できません ; リクエストが多すぎます ; (?:访问|存取|请求)(?:被)?(?:拒绝|禁止|受限|拦截|阻断) ;
(?:您的)?访问(?:请求)?(?:被|已被)(?:拒绝|禁止|拦截|阻断) ; (?:存取|訪問)(?:被)?(?:拒絕|禁止) ; 禁止访问 ; 请求过于频繁
; 접근(?:이)? ?(?:거부|차단|제한)(?:되었습니다|됨)? ; (?:تم )?(?:رفض|حظر|منع) (?:الوصول|الدخول) ; الوصول (?:مرفوض|
محظور|ممنوع) ; ممنوع
""",
    "login_wall": r"""
(?:please )?(?:log|sign)[- ]?in(?: or (?:register|sign ?up|create an account))?(?: (?:to|with|required|page|form|
first|now|here|into)(?: .{1,40})?)? ; (?:user |member |members |customer |client |account |admin )?log ?[io]n(?:
page| required| form)? ; members? (?:only|area) ; authentication required ; login required ; single sign-on ; sign in
to .{1,40} ; log in to .{1,40} ; private (?:site|blog|page) ; (?:password )?protected(?: page| site)? ; authorization
required ; (?:bitte )?(?:anmelden|einloggen)(?: .{1,30})? ; anmeldung(?: erforderlich)? ; melden sie sich an ;
mitglieder-?login ; kunden-?login ; (?:se )?connexion(?: requise)? ; (?:connectez-vous|identifiez-vous)(?: .{1,40})? ;
authentification(?: requise)? ; s'identifier ; (?:iniciar|inicia|inicie) sesión(?: .{1,30})? ; inicio de sesión ;
(?:acceso|ingreso) (?:de )?(?:usuarios|clientes|socios) ; identifícate ; ingresar ; entrar ; (?:fazer|faça|efetuar)
(?:o )?login(?: .{1,30})? ; iniciar sessão ; acesse sua conta ; acced[ia](?: .{1,30})? ; effettua (?:il )?(?:login|
l'accesso) ; inloggen(?: .{1,30})? ; log in bij .{1,30} ; aanmelden ; (?:zaloguj się|logowanie)(?: .{1,30})? ; panel
logowania ; (?:вход|войти|войдите|авторизация|авторизуйтесь)(?: (?:в|на|для|с)(?: .{1,40})?)? ; личный кабинет ; вхід
; увійти ; giriş(?: yap(?:ın)?)? ; oturum aç(?:ın)? ; logga in ; přihlášení ; přihlásit se ; ログイン(?:画面|ページ|
が必要です|してください)? ; サインイン ; 会員ログイン ; (?:用户|用戶|会员|會員|请先?|請先?)?(?:登录|登錄|登入)(?:页面|
后.*)? ; 로그인(?:이 필요합니다| 페이지)? ; تسجيل (?:الدخول|دخول)(?: .{1,30})?
""",
    "consent_wall": r"""
before you continue(?: to .{1,40})? ; (?:cookie|privacy|gdpr|data|tracking) (?:consent|choices|wall|notice|
preferences|settings|gate)(?: required)? ; consent(?: required)? ; (?:we value|we respect|we care about) your privacy
; your (?:privacy|data)(?: choices|,? your choice)? ; manage (?:your )?(?:cookies|privacy|consent) ; age
(?:verification|gate|check|restriction|restricted)(?: required)? ; (?:please )?(?:verify|confirm) your age ; are you
(?:over|at least|of legal|older than|18|21).{0,40} ; (?:you must be|adults?) (?:only|at least (?:18|21)|18|21).{0,30}
; content warning ; sensitive content ; (?:is an )?adult (?:content|site|website)(?: warning)? ; welcome to .{1,40}
please verify your age ; accept (?:all )?cookies.{0,40} ; subscribe or accept(?: cookies)? ; yahoo is part of.* ;
bevor sie (?:zu .{1,40} )?(?:weitergehen|fortfahren|weiterlesen) ; (?:cookie-?|datenschutz-?)(?:einwilligung|
einstellungen|hinweis|zustimmung) ; (?:ihre|deine) (?:privatsphäre|daten).{0,40} ; einwilligung(?: erforderlich)? ;
zustimmung(?: erforderlich)? ; altersprüfung ; alters(?:verifikation|nachweis|kontrolle|abfrage) ; (?:bist du|sind
sie) (?:schon |mindestens |über )?18.{0,30} ; .{1,30} mit werbung .{0,60} ; mit werbung weiterlesen.* ; avant (?:de
continuer|d'accéder).{0,40} ; (?:gestion|choix|paramètres|consentement) (?:des |aux |relatif aux |de )?(?:cookies|
confidentialité) ; (?:le )?respect de votre vie privée.{0,40} ; votre vie privée.{0,40} ; vérification de (?:l'|votre
)?âge ; avez-vous (?:plus de )?18 ans ; (?:réservé|interdit) aux (?:adultes|mineurs|moins de 18 ans) ; antes de
(?:continuar|ir a).{0,40} ; (?:configuración|gestión|consentimiento|aviso) de (?:las )?(?:cookies|privacidad) ; (?:tu|
su) privacidad.{0,40} ; (?:valoramos|nos importa) (?:tu|su) privacidad ; verificación de (?:la )?edad ; ¿?(?:eres|es
usted) mayor de (?:edad|18).{0,20} ; (?:verificação|confirmação) de idade ; (?:sua|a sua) privacidade.{0,40} ;
(?:consentimento|definições|gestão) de cookies ; você tem (?:mais de )?18 anos ; tem mais de 18 anos ; prima di
(?:continuare|proseguire).{0,40} ; (?:la tua|la vostra|tua) privacy.{0,40} ; (?:consenso|impostazioni|gestione)(?:
dei| ai)? cookie ; verifica (?:dell')?età ; hai (?:più di|almeno|compiuto) 18 anni ; voordat (?:je|u) (?:verdergaat|
verder gaat|doorgaat).{0,40} ; (?:cookie-?|privacy-?)(?:toestemming|instellingen|voorkeuren|melding|keuzes) ; (?:jouw|
uw|je) privacy.{0,40} ; leeftijds(?:controle|verificatie|check) ; ben (?:je|jij|u) (?:18|ouder dan 18).{0,20} ; zanim
przejdziesz.{0,40} ; (?:twoja|twojej|szanujemy twoją|dbamy o twoją) prywatnoś\pL{1,3}.{0,30} ; (?:ustawienia|zgoda na)
(?:plik(?:i|ów) )?(?:cookies?|prywatności) ; weryfikacja wieku ; czy masz (?:ukończone )?18 lat ; прежде чем
продолжить.{0,40} ; (?:настройки|согласие на|использование) (?:файл(?:ы|ов) )?(?:cookies?|куки|
конфиденциальности).{0,30} ; (?:ваша|мы ценим вашу) конфиденциальность.{0,30} ; (?:подтверждение|проверка|подтвердите)
(?:ваш )?возраста? ; вам (?:уже )?(?:есть )?18.{0,20} ; yaş (?:doğrulama|kontrolü)(?:sı)? ; devam etmeden önce.{0,40}
; çerez (?:ayarları|onayı|tercihleri) ; (?:続行|ご利用)(?:する)?前に.{0,30} ; (?:cookie|クッキー)(?:の)?(?:同意|設定|
使用).{0,20} ; 年齢(?:確認|認証) ; (?:あなたは)?(?:18|20)歳以上.{0,15} ; (?:隐私|隱私|cookie)(?:设置|同意|偏好|設定|
声明) ; 继续(?:访问|之前|前).{0,20} ; 年(?:龄|齡)(?:验证|确认|驗證|確認) ; (?:您|你)(?:是否)?(?:已)?(?:年满|
年滿)?18.{0,10} ; 연령 (?:확인|인증) ; 쿠키 (?:동의|설정) ; قبل (?:المتابعة|الانتقال).{0,40} ; (?:التحقق|تأكيد) من
العمر ; خصوصيتك.{0,30} ; (?:إعدادات|الموافقة على) ملفات تعريف الارتباط
""",
    "parked": r"""
(?:the |this )?(?:domain|domain name|website|web address|site)?(?: ?[\w.-]{1,60}\.[a-z]{2,18})?(?: domain)? (?:is|may
be|could be) (?:for sale|available(?: for (?:sale|purchase))?|parked(?: .{1,40})?) ; (?:premium )?domain(?: name)?
(?:for sale|is for sale|parked|parking|expired|available|has expired) ; buy (?:this|the)? ?domain.{0,60} ; (?:this
)?domain (?:name )?(?:has )?expired ; [\w-]{1,60}(?:\.[\w-]{1,30}){1,3}(?: (?:is )?for sale| domain name is for
sale.*|: (?:domain )?for sale) ; parked (?:domain|page|at .{1,30}|free.*) ; domain parking ; for sale: [\w.-]{3,80} ;
own this domain.{0,40} ; shop for over .{1,40} premium domains ; (?:diese |die )?domain(?: [\w.-]{3,80})? (?:ist |
steht |kann )?(?:zu verkaufen|zum verkauf|zu kaufen|verfügbar|käuflich|geparkt|gekauft werden|noch nicht eingerichtet)
; domain (?:zu verkaufen|zum verkauf|geparkt|registriert) ; (?:ce |le )?(?:nom de )?domaine(?: [\w.-]{3,80})? (?:est
)?(?:à vendre|en vente|expiré|parqué|réservé|déposé) ; (?:el |este )?dominio(?: [\w.-]{3,80})? (?:está )?(?:en venta|a
la venta|caducado|expirado|aparcado|reservado|estacionado) ; (?:o |este )?domínio(?: [\w.-]{3,80})? (?:está )?(?:à
venda|expirado|estacionado|reservado) ; (?:il |questo )?dominio(?: [\w.-]{3,80})? (?:è )?(?:in vendita|scaduto|
parcheggiato|registrato) ; (?:het |deze )?domein(?:naam)?(?: [\w.-]{3,80})? (?:is )?(?:te koop|verlopen|geparkeerd|
geregistreerd|gereserveerd) ; (?:ta |tę )?domen[aęy](?: [\w.-]{3,80})? (?:jest )?(?:na sprzedaż|do kupienia|
zaparkowana|wygasła|zarejestrowana) ; (?:этот )?домен(?: [\w.-]{3,80})? (?:прода[её]тся|на продаже|выставлен на
продажу|припаркован|зарегистрирован|истек|не прилинкован.*) ; продажа домена.{0,40} ; купить домен.{0,40} ; bu (?:alan
adı|domain) (?:satılık.*|park edilmiştir) ; satılık (?:alan adı|domain) ; (?:この)?(?:ドメイン|ドメイン名)(?:は|
が)?(?:販売中|売出し中|売り出し中|期限切れ|お名前\.com).{0,20} ; ドメインパーキング ; (?:该|本|
此)?域名(?:正在)?(?:出售|待售|转让|可出售|已过期|停放).{0,10} ; 域名(?:出售|停放|转让)(?:中)? ; (?:이 )?도메인(?:은|
이)? ?(?:판매|주차).{0,10} ; (?:هذا )?(?:النطاق|الدومين|اسم النطاق)(?: .{0,40})? (?:للبيع|معروض للبيع|محجوز)
""",
    "maintenance": r"""
(?:site |website |server |system |scheduled |planned |temporary |under |down for |closed for |currently (?:down for|
under) |we(?:'re| are) (?:currently )?(?:down for|under(?:going)?) |undergoing )*(?:scheduled |planned
)?maintenance(?: mode| break| in progress| page| underway| work)? ; (?:website |site |page )?(?:is )?(?:currently
)?under[- ]construction ; (?:website |site |launching |something (?:awesome |great |new )?(?:is )?)?coming (?:very
)?soon ; (?:we(?:'ll| will) be )?(?:right |be )?back (?:soon|shortly|online soon) ; we(?:'ll| will) be (?:right
)?back.{0,20} ; we(?:'re| are) (?:launching|opening|coming) soon ; opening soon ; launching soon ; (?:this
)?(?:account|site|website|hosting account|web ?site|service) (?:is |has been |temporarily )*(?:suspended|disabled|
offline|closed) ; (?:site|website|temporarily|currently|service(?: temporarily)?) (?:is )?(?:temporarily
)?(?:unavailable|offline|down|closed|out of service) ; (?:error )?establishing a database connection ; (?:there has
been a )?critical error on (?:this|your) website ; database (?:connection )?error ; (?:internal )?server error ; bad
gateway ; gateway time-?out ; service (?:temporarily )?unavailable ; be right back ; temporarily (?:down|unavailable|
closed) ; technical difficulties ; site not published ; wartungs(?:arbeiten|modus|pause|seite)? ;
wartung(?:sarbeiten)? ; (?:die |diese |unsere )?(?:website|webseite|seite|homepage|internetseite) (?:ist |wird |
befindet sich )?(?:gerade |zur ?zeit |derzeit |momentan )?(?:im aufbau|in bearbeitung|gewartet|in wartung|nicht
erreichbar|überarbeitet|gesperrt) ; im aufbau ; hier entsteht .{1,60} ; demnächst(?: verfügbar)? ; wir sind (?:gleich|
bald) (?:wieder da|zurück) ; en (?:cours de )?(?:maintenance|construction|travaux) ; (?:site|le site|notre site)(?:
web)? (?:est )?(?:actuellement )?en (?:cours de )?(?:maintenance|construction|travaux) ; maintenance (?:en cours|du
site|programmée) ; bient[oô]t (?:disponible|en ligne|de retour) ; (?:site|compte) (?:suspendu|indisponible) ;
(?:sitio|página|web|sitio web)?(?: web)? ?(?:está )?en (?:construcción|mantenimiento|obras) ; (?:en )?mantenimiento(?:
programado)? ; próximamente ; muy pronto ; (?:cuenta|sitio) suspendid[ao] ; volvemos (?:pronto|enseguida) ; (?:site
)?em (?:construção|manutenção|breve) ; (?:site |página )?(?:temporariamente )?(?:em manutenção|indisponível) ;
manutenção(?: programada)? ; conta suspensa ; (?:voltamos|voltaremos) (?:já|logo|em breve) ; (?:sito )?in
(?:manutenzione|costruzione|allestimento) ; manutenzione(?: programmata| in corso)? ; prossimamente ; sito (?:in
costruzione|sospeso|non disponibile|in manutenzione|web in costruzione) ; (?:website |site |deze site is |wij zijn
)?(?:in|onder) (?:onderhoud|constructie|aanbouw) ; onderhoud(?:swerkzaamheden)? ; binnenkort (?:online|beschikbaar|
terug)? ; (?:strona |serwis )?w (?:budowie|przebudowie|trakcie (?:budowy|konserwacji|prac)) ; (?:przerwa|prace)
(?:techniczn[ae]|serwisow[ae]|konserwacyjn[ae]) ; wkrótce(?: .{1,30})? ; strona (?:zawieszona|tymczasowo niedostępna|w
budowie) ; (?:сайт |страница |портал )?(?:находится )?(?:на|в) (?:реконструкции|разработке|обслуживании|ремонте|
техобслуживании) ; (?:ведутся |идут |проводятся )?(?:технические|профилактические|плановые|регламентные|техн\.)
работы.{0,30} ; техническое обслуживание ; (?:скоро|уже скоро) (?:открытие|открытие сайта|здесь .{1,30}) ; сайт
(?:временно )?(?:недоступен|закрыт|заблокирован|отключ[её]н|приостановлен|в разработке) ; технічні роботи ; (?:site|
sitemiz|web sitemiz)? ?(?:bakımda|bakım(?: modu| çalışması)?|yapım aşamasında(?:dır)?) ; çok yakında ; under
(?:underhåll|uppbyggnad) ; probíhá údržba ; údržba ; (?:ただいま|現在)?(?:、)?(?:システム|サーバー?|
サイト)?(?:の)?メンテナンス(?:中|のお知らせ)?(?:です)? ; (?:準備|工事|作成|建設)中(?:です)? ; 近日(?:公開|オープン) ;
サービス(?:一時)?停止中 ; (?:网站|系统|网页|站点)?(?:正在)?(?:维护|建设|升级|升级维护|维护升级)(?:中)? ; (?:網站|
系統)(?:正在)?(?:維護|建置)中? ; 即将(?:上线|推出) ; 网站(?:暂停|已关闭|暂时无法).{0,10} ; (?:사이트|시스템|서버)?
?(?:점검|공사|준비) ?중(?:입니다)? ; (?:الموقع )?(?:تحت|قيد|في وضع) (?:الصيانة|الإنشاء|التطوير) ; صيانة ; قريبا ?ً? ;
قريباً
""",
    "default_page": r"""
welcome to (?:nginx|openresty|tengine|caddy|centos|apache|apache tomcat|iis|jetty|lighttpd|openlitespeed|plesk|xampp|
your new .{1,30}|the .{0,30} test page|cpanel|rocky linux|almalinux|our server)(?: \d+)?(?: on .{1,30})? ; apache2?
(?:ubuntu|debian|centos|http server|fedora|linux|test).{0,40}(?:default|test) page.{0,20} ; (?:http server )?test
page.{0,60} ; it works ; it's working ; iis(?: ?\d+(?:\.\d)?)?(?: windows(?: server)?)? ; internet information
services ; microsoft internet information services \d.* ; apache tomcat(?:/[\d.]+)? ; (?:web server's |web server |
domain |server )?default (?:page|web ?page|web site page|parallels plesk.*|plesk.*|site|vhost|index|server
page).{0,30} ; default (?:web )?(?:page|site) ; index of /.{0,200} ; directory listing (?:for|of) /.{0,200} ; .{0,60}
- /(?:.{0,100}/)?$ ; (?:your )?web(?: ?site)? (?:is )?(?:ready|hosting is ready|has been created) ; success! your new
(?:web )?server is ready.* ; congratulations!? your (?:site|website|server|domain) (?:is|has been).{0,40} ; (?:恭喜,?
?)?(?:站点|网站)创建成功 ; 没有找到站点 ; (?:домен|сайт) (?:успешно )?(?:создан|привязан|добавлен|настроен)(?:
.{1,30})? ; hello,? world ; site (?:is )?(?:not (?:yet )?(?:configured|set ?up)|created successfully).{0,30} ; future
home of .{1,60} ; placeholder page ; hosting(?:er)?,? (?:is|wurde).{0,30} ; willkommen (?:bei|auf) (?:plesk|ihrer
neuen .{1,30}) ; there(?:'s| is) nothing here,? yet ; no such app ; (?:heroku \| )?no such app ; application is
running
""",
    "soft_404": r"""
(?:error )?(?:404|410)(?: error| page| gone| html)? ; (?:page|file|url|content|document|article|post|site|object|
resource|product|item|listing|video|profile|topic|thread|job|entry|story|event|nothing|that page|route|web page|path|
requested (?:page|url)|the requested (?:page|url)|we(?:'re| are) sorry page) (?:was |is |can ?not be |could not be |
can't be |couldn't be |can't |does |has been |has )?(?:not (?:be )?(?:found|exist(?:ing|s)?|available)|found|missing|
removed|deleted|moved|gone|no longer (?:available|exists?|active)|unavailable|expired|doesn't exist)(?: here)? ; not
found ; nothing (?:found|here|to see here)(?: .{1,40})? ; (?:we )?(?:can't|cannot|couldn't|can not|could not) (?:seem
to )?find (?:that|the|this) (?:page|content|article|url)?.{0,40} ; (?:this |the |that )?page (?:doesn't|does not|no
longer) exists?(?: anymore)? ; (?:the )?page you(?:'re| are| were)? (?:looking for|requested|tried to reach).{0,60} ;
page (?:isn't|is not) available ; (?:this )?(?:page|content|link) (?:isn't|is not|is no longer) (?:available|here)(?:
right now)? ; dead (?:link|end) ; broken link ; lost\?? ; (?:you (?:seem|appear) to be |are you |looks like you're
)lost ; gone ; invalid (?:url|link|page|address) ; missing page ; no (?:results|posts|articles?|pages?) found ; no
longer available ; (?:die |diese |ihre )?(?:angeforderte |gesuchte |gewünschte |aufgerufene )?(?:seite|datei|artikel|
inhalt|url|dokument|beitrag|produkt) (?:wurde |konnte |existiert |ist |kann )?(?:leider )?(?:nicht (?:gefunden(?:
werden)?|vorhanden|verfügbar|existiert|mehr verfügbar)|nicht(?: mehr)?|gelöscht|existiert nicht(?: mehr)?) ; nicht
gefunden ; nichts gefunden ; seite existiert nicht ; (?:la |cette |votre )?(?:page|fichier|article|contenu|ressource|
url)(?: que vous .{1,30}| demandée?)? (?:est |n'est |n'a |n'existe |non |non-)?(?:introuvable|non trouvée?|pas (?:été
)?(?:trouvée?|disponible)|inexistante|pas(?: ou plus)?|plus (?:disponible|en ligne)|n'existe (?:pas|plus)(?: ou
plus)?) ; introuvable ; non trouvée? ; aucun résultat ; (?:la |esta )?(?:página|pagina|url|artículo|contenido|
archivo)(?: (?:que (?:buscas?|has solicitado)|solicitad[ao]|web))? (?:no |ha sido |ya no )?(?:se ha |ha sido |fue |
está |se )?(?:encontrad[ao]|encuentra|existe|disponible|no encontrad[ao]|no disponible|pudo encontrar|eliminad[ao]) ;
no encontrad[ao] ; no se (?:ha )?encontr(?:ó|ado|amos) (?:la )?(?:página|nada|resultados)?.{0,20} ; (?:a |esta
)?(?:página|pagina|conteúdo|arquivo)(?: (?:que procura|solicitada))? (?:não |foi )?(?:foi |está |existe
)?(?:encontrad[ao]|existe|disponível|não encontrad[ao]|removid[ao]|localizada)? ; não encontrad[ao] ; nada encontrado
; (?:la |questa )?pagina(?: richiesta| cercata| web)? (?:non |è )?(?:è )?(?:stata )?(?:trovata|esiste|disponibile|non
trovata|inesistente|presente)(?: più)? ; non trovat[ao] ; (?:de |deze )?pagina (?:is |bestaat |kan |werd )?(?:helaas
)?(?:niet (?:gevonden|meer beschikbaar|beschikbaar)|niet(?: meer)?|bestaat niet(?: meer)?|niet gevonden (?:worden)?) ;
niet gevonden ; (?:ta |taka )?strona (?:nie |o podanym adresie nie )?(?:została |istnieje|jest )?(?:znaleziona|
odnaleziona|istnieje|dostępna|nie istnieje)? ; nie znaleziono(?: strony| takiej strony)? ; nie ma takiej strony ; brak
strony ; (?:такой |эта |запрашиваемая |данная |запрошенная )?(?:страниц[аы]|файл|материал|статья|документ|новость|
товар) (?:не |была |больше не |по данному адресу не )?(?:найден[ао]?|существует|удалена?|доступна|не найден[ао]?|не
существует|отсутствует|устарела) ; не найден[ао]? ; ничего не найдено ; такой страницы (?:не существует|нет) ;
страницы не существует ; (?:сторінк[аи]|сторінку) (?:не |не було )?(?:знайдено|існує) ; (?:aradığınız )?sayfa
(?:bulunamadı|mevcut değil|yok) ; bulunamadı ; sidan (?:hittades inte|kunde inte hittas|finns inte) ; stránka
(?:nenalezena|neexistuje|nebyla nalezena) ; (?:お探しの|指定された|ご指定の|該当の|該当する)?(?:ページ|ファイル|url|
記事|コンテンツ|商品)(?:は|が|を)?(?:現在)?(?:見つかりません(?:でした)?|存在しません|見つけられません(?:でした)?|
ありません(?:でした)?|表示できません|削除されました) ; 見つかりません(?:でした)? ; (?:您|你)?(?:访问|请求|要找|查找|
浏览|所?請求|要查看|訪問)?的?(?:页面|网页|文章|内容|頁面|網頁|文件|地址)(?:不存在|未找到|找不到(?:了)?|
已(?:被)?(?:删除|刪除)|走丢了|不见了|没有找到|丢失了|無法顯示)(?:或已.{1,8})? ; (?:找不到|未找到|没有找到|
沒有找到)(?:该|您.{1,6}|这个|此|網|相关)?的?(?:页面|网页|頁面|網頁|页|頁|内容)? ; (?:요청하신 |찾으시는 |해당
)?페이지(?:를|가)? (?:찾을 수 없습니다|존재하지 않습니다|없습니다) ; (?:الصفحة|الصفحه|المقال)(?: (?:التي تبحث عنها|
المطلوبة))? (?:غير موجودة?|غير متوفرة|لم يتم العثور عليها|لا توجد|محذوفة) ; لم يتم العثور على (?:الصفحة|النتائج|شيء) ;
غير موجودة?
""",
}
