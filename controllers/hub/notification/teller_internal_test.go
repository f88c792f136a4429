package notification

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
	"github.com/fleetflow/fleetflow/test/fixture"
)

const agents = "fleet-system"

// known are the routes that a test's engine has been told of.
type known struct {
	mu      sync.Mutex
	routes  map[delivery.Key]delivery.Route
	changes int
	// unserved are the ways that wait for their place.
	unserved map[delivery.Key]bool
}

func (k *known) Put(route delivery.Route) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	k.routes[route.Key] = route
}

func (k *known) Remove(key delivery.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	delete(k.routes, key)
}

func (k *known) Report(key delivery.Key) delivery.Report {
	return delivery.Report{Unserved: k.unserved[key]}
}
func (k *known) OnChange(string, func(string)) {}

// world is a hub with a teller.
type world struct {
	*Teller
	reminder *reminder
	client   client.WithWatch
	routes   *known
	events   *events.FakeRecorder
	clock    *clocktesting.FakeClock
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	c := fixture.NewClientBuilder(fixture.Scheme(t, corev1.AddToScheme)).WithObjects(objects...).
		WithStatusSubresource(&fleetflowv1alpha1.NotificationChannel{}, &fleetflowv1alpha1.NotificationRule{}, &fleetflowv1alpha1.AuditRecord{}).Build()
	w := &world{
		client: c, routes: &known{routes: map[delivery.Key]delivery.Route{}}, events: events.NewFakeRecorder(100),
		clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)),
	}
	sender := NewSender(&outbound.Client{Caller: outbound.Caller{Guard: outbound.Guard{AllowLoopback: true}}, Live: c, Namespace: agents}, w.clock)
	w.Teller = NewTeller(c, sender, w.routes, w.events, w.clock)
	w.reminder = newReminder(c, c, w.clock, w.Teller)
	return w
}

func (w *world) look(t *testing.T, object client.Object) {
	t.Helper()
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	var err error
	switch object.(type) {
	case *fleetflowv1alpha1.NotificationChannel:
		_, err = w.Teller.channels.Reconcile(t.Context(), request)
	case *fleetflowv1alpha1.NotificationRule:
		_, err = w.ReconcileRule(t.Context(), request)
	}
	require.NoError(t, err)
	require.NoError(t, w.client.Get(t.Context(), request.NamespacedName, object))
}

// isWantedBy reports whether a way tells a record.
func isWantedBy(t *testing.T, route delivery.Route, record *fleetflowv1alpha1.AuditRecord) bool {
	t.Helper()
	wants, err := route.Wants(record)
	require.NoError(t, err)
	return wants
}

// tell has the engine deliver records by a way.
func (w *world) tell(t *testing.T, way string, records ...fleetflowv1alpha1.AuditRecord) error {
	t.Helper()
	route, is := w.routes.routes[delivery.Key{Kind: RouteKind, Name: way}]
	require.True(t, is, "there is a way %s", way)
	for i := range records {
		require.True(t, isWantedBy(t, route, &records[i]), records[i].Spec.Type)
	}
	return route.To.Deliver(t.Context(), records)
}

func (w *world) fact(run string, kind fleetflowv1alpha1.AuditRecordType, change ...func(*fleetflowv1alpha1.AuditRecordSpec)) fleetflowv1alpha1.AuditRecord {
	id := fleetflowv1alpha1.RecordID(run, kind)
	at := metav1.NewTime(w.clock.Now())
	record := fleetflowv1alpha1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{Name: "r-" + id[:16], CreationTimestamp: at},
		Spec: fleetflowv1alpha1.AuditRecordSpec{
			ID: id, Type: kind, Time: at, PlacementName: "web", UpdateRunName: run, StageName: "prod", Sequence: 1, Message: "see <!channel> & [this](https://evil)",
			SubjectRef: fleetflowv1alpha1.AuditSubjectReference{Kind: "ClusterStagedUpdateRun", Name: run, UID: "uid-" + run},
		},
	}
	for _, c := range change {
		c(&record.Spec)
	}
	return record
}

func secretFor(channel string, data map[string]string, annotations ...string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: agents, Name: channel + "-secret", Labels: map[string]string{fleetflowv1alpha1.ChannelLabel: channel}, Annotations: map[string]string{},
	}, Data: map[string][]byte{}}
	for i := 0; i+1 < len(annotations); i += 2 {
		secret.Annotations[annotations[i]] = annotations[i+1]
	}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

func channelNamed(name string, spec fleetflowv1alpha1.NotificationChannelSpec) *fleetflowv1alpha1.NotificationChannel {
	return &fleetflowv1alpha1.NotificationChannel{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1}, Spec: spec}
}

func ruleTo(name string, channels ...string) *fleetflowv1alpha1.NotificationRule {
	rule := &fleetflowv1alpha1.NotificationRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))},
		Spec:       fleetflowv1alpha1.NotificationRuleSpec{Types: []string{"run.*", "approval.*"}},
	}
	for _, channel := range channels {
		rule.Spec.ChannelRefs = append(rule.Spec.ChannelRefs, fleetflowv1alpha1.NotificationChannelReference{Name: channel})
	}
	return rule
}

// received are the requests that a server has had.
type received struct {
	mu     sync.Mutex
	bodies []string
	header []http.Header
	answer func(w http.ResponseWriter, r *http.Request)
}

func (r *received) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, string(body))
	r.header = append(r.header, request.Header.Clone())
	if r.answer != nil {
		r.answer(w, request)
	}
}

func serve(t *testing.T, r *received) string {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return server.URL
}

func key(name string) fleetflowv1alpha1.ChannelSecret {
	return fleetflowv1alpha1.ChannelSecret{Name: name + "-secret", Key: "value"}
}

func statusOf(conditions []metav1.Condition, kind string) (status metav1.ConditionStatus, reason string) {
	if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
		return condition.Status, condition.Reason
	}
	return "", ""
}

func TestAWebhookIsSignedAsTheStandardHasIt(t *testing.T) {
	r := &received{}
	signing := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a key of the channel of the fleet"))
	older := "whsec_" + base64.StdEncoding.EncodeToString([]byte("the key that it has had until now"))
	channel := channelNamed("hook", fleetflowv1alpha1.NotificationChannelSpec{
		Type: fleetflowv1alpha1.ChannelWebhook, DashboardURL: "https://fleet.example.com",
		Webhook: &fleetflowv1alpha1.WebhookChannel{URL: serve(t, r), AllowPlainText: true, SigningSecret: key("hook")},
	})
	rule := ruleTo("people", "hook")
	w := newWorld(t, channel, rule, secretFor("hook", map[string]string{"value": signing + " " + older}))
	w.look(t, channel)
	w.look(t, rule)
	require.NoError(t, w.tell(t, "people/hook", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)))
	require.Len(t, r.bodies, 1)
	for _, known := range []string{signing, older} {
		verifier, err := standardwebhooks.NewWebhook(known)
		require.NoError(t, err)
		require.NoError(t, verifier.Verify([]byte(r.bodies[0]), r.header[0]), "a receiver that knows either key takes it")
		require.Error(t, verifier.Verify([]byte(r.bodies[0]+" "), r.header[0]))
		late := r.header[0].Clone()
		late.Set("webhook-timestamp", fmt.Sprint(w.clock.Now().Add(-6*time.Minute).Unix()))
		require.Error(t, verifier.Verify([]byte(r.bodies[0]), late), "one that is captured and sent again is not taken")
	}
	var body webhookMessage
	require.NoError(t, json.Unmarshal([]byte(r.bodies[0]), &body))
	assert.Equal(t, "Run web-2 has failed (placement web)", body.Data.Title)
	assert.Equal(t, "kubectl fleet why run/web-2", body.Data.Next)
	assert.Equal(t, "https://fleet.example.com/runs/web-2", body.Data.Link)
	assert.Equal(t, r.header[0].Get("webhook-id"), body.Data.ID)
	w.look(t, channel)
	status, _ := statusOf(channel.Status.Conditions, "Ready")
	assert.Equal(t, metav1.ConditionTrue, status)
	assert.NotNil(t, channel.Status.LastDeliveryTime)
}

func TestWhatSlackAndTeamsGet(t *testing.T) {
	for name, test := range map[string]struct {
		spec   func(url string) (fleetflowv1alpha1.NotificationChannelSpec, string)
		golden string
	}{
		"Slack, by an incoming webhook": {func(url string) (fleetflowv1alpha1.NotificationChannelSpec, string) {
			return fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}}, url + "/services/T0/B0/secret"
		}, `{"text":"Run web-2 has failed (placement web)","blocks":[
			{"type":"section","text":{"type":"mrkdwn","text":":x: *Run web-2 has failed (placement web)*","verbatim":true}},
			{"type":"section","text":{"type":"mrkdwn","text":"TIME UTC run web-2 has failed: see &lt;!channel&gt; &amp; [this](https://evil)","verbatim":true}},
			{"type":"section","text":{"type":"mrkdwn","text":"Next: ` + "`kubectl fleet why run/web-2`" + `\n<https://fleet.example.com/runs/web-2|Open the dashboard>","verbatim":true}}],
			"unfurl_links":false,"unfurl_media":false}`},
		"Slack, by an app": {func(string) (fleetflowv1alpha1.NotificationChannelSpec, string) {
			return fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{Channel: "#ops", TokenSecret: new(key("chat"))}}, "xoxb-1-secret"
		}, `{"channel":"#ops","text":"Run web-2 has failed (placement web)","blocks":[
			{"type":"section","text":{"type":"mrkdwn","text":":x: *Run web-2 has failed (placement web)*","verbatim":true}},
			{"type":"section","text":{"type":"mrkdwn","text":"TIME UTC run web-2 has failed: see &lt;!channel&gt; &amp; [this](https://evil)","verbatim":true}},
			{"type":"section","text":{"type":"mrkdwn","text":"Next: ` + "`kubectl fleet why run/web-2`" + `\n<https://fleet.example.com/runs/web-2|Open the dashboard>","verbatim":true}}],
			"unfurl_links":false,"unfurl_media":false,"metadata":{"event_type":"update_run_message","event_payload":{"id":"ID"}}}`},
		"Teams": {func(url string) (fleetflowv1alpha1.NotificationChannelSpec, string) {
			return fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelTeams, Teams: &fleetflowv1alpha1.TeamsChannel{URLSecret: key("chat")}}, url + "/workflows/1?sig=secret"
		}, `{"type":"message","attachments":[{"contentType":"application/vnd.microsoft.card.adaptive","content":{
			"type":"AdaptiveCard","$schema":"http://adaptivecards.io/schemas/adaptive-card.json","version":"1.4","body":[
			{"type":"RichTextBlock","inlines":[{"type":"TextRun","text":"Run web-2 has failed (placement web)","weight":"bolder","size":"medium","color":"attention"}]},
			{"type":"RichTextBlock","inlines":[{"type":"TextRun","text":"TIME UTC run web-2 has failed: see <!channel> & [this](https://evil)"}]},
			{"type":"RichTextBlock","inlines":[{"type":"TextRun","text":"Next: kubectl fleet why run/web-2","fontType":"monospace"}]}],
			"actions":[{"type":"Action.OpenUrl","title":"Open the dashboard","url":"https://fleet.example.com/runs/web-2"}]}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &received{answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":true}`) }}
			url := serve(t, r)
			spec, secret := test.spec(url)
			spec.DashboardURL = "https://fleet.example.com"
			channel := channelNamed("chat", spec)
			rule := ruleTo("people", "chat")
			w := newWorld(t, channel, rule, secretFor("chat", map[string]string{"value": secret}))
			w.Sender.SlackURL = url + "/api/chat.postMessage"
			w.look(t, channel)
			w.look(t, rule)
			record := w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)
			require.NoError(t, w.tell(t, "people/chat", record))
			require.Len(t, r.bodies, 1)
			golden := strings.NewReplacer("TIME", record.Spec.Time.UTC().Format(time.TimeOnly), `"ID"`, `"msg_`+record.Spec.ID[:32]+`"`).Replace(test.golden)
			assert.JSONEq(t, golden, r.bodies[0])
			// What Slack and Teams say when they do not take it, and show of what is secret.
			for _, answer := range []func(http.ResponseWriter, *http.Request){
				func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no "+secret, http.StatusForbidden) },
				func(w http.ResponseWriter, request *http.Request) {
					http.Error(w, "no such path "+request.RequestURI, http.StatusNotFound)
				},
			} {
				r.answer = answer
				err := w.tell(t, "people/chat", record)
				var refused *delivery.RefusedError
				require.ErrorAs(t, err, &refused)
				assert.NotContains(t, err.Error(), "secret")
				w.look(t, channel)
				status, reason := statusOf(channel.Status.Conditions, "Ready")
				assert.Equal(t, metav1.ConditionFalse, status)
				assert.Equal(t, fleetflowv1alpha1.ReasonRefused, reason)
				text, err := json.Marshal(channel.Status)
				require.NoError(t, err)
				assert.NotContains(t, string(text), "secret")
			}
		})
	}
}

func TestWhatSlackSaysWithStatus200(t *testing.T) {
	for said, want := range map[string]string{"channel_not_found": "refused", "ratelimited": "again", "invalid_blocks": "content"} {
		r := &received{answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"ok":false,"error":%q}`, said) }}
		channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack,
			Slack: &fleetflowv1alpha1.SlackChannel{Channel: "#ops", TokenSecret: new(key("chat"))}})
		rule := ruleTo("people", "chat")
		w := newWorld(t, channel, rule, secretFor("chat", map[string]string{"value": "xoxb-1"}))
		w.Sender.SlackURL = serve(t, r)
		w.look(t, channel)
		w.look(t, rule)
		err := w.tell(t, "people/chat", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed))
		require.ErrorContains(t, err, said)
		var refused *delivery.RefusedError
		assert.Equal(t, want != "again", errors.As(err, &refused), said)
		assert.Equal(t, want == "content", refused != nil && refused.Content, said)
	}
}

// What follows about a run is told in the thread of the first message, and in the channel, too, if people had better do something about it.
func TestARunHasAThreadInSlack(t *testing.T) {
	sent := 0
	refuses := ""
	r := &received{answer: func(w http.ResponseWriter, _ *http.Request) {
		if refuses != "" {
			fmt.Fprintf(w, `{"ok":false,"error":%q}`, refuses)
			return
		}
		sent++
		fmt.Fprintf(w, `{"ok":true,"ts":"1503435956.00000%d"}`, sent)
	}}
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack,
		Slack: &fleetflowv1alpha1.SlackChannel{Channel: "#ops", TokenSecret: new(key("chat"))}})
	rule := ruleTo("people", "chat")
	w := newWorld(t, channel, rule, secretFor("chat", map[string]string{"value": "xoxb-1"}))
	w.Sender.SlackURL = serve(t, r)
	w.look(t, channel)
	w.look(t, rule)
	tell := func(run string, kind fleetflowv1alpha1.AuditRecordType) (thread string, broadcast bool) {
		require.NoError(t, w.tell(t, "people/chat", w.fact(run, kind)))
		var body slackMessage
		require.NoError(t, json.Unmarshal([]byte(r.bodies[len(r.bodies)-1]), &body))
		return body.Thread, body.Broadcast
	}
	for _, step := range []struct {
		run       string
		kind      fleetflowv1alpha1.AuditRecordType
		thread    string
		broadcast bool
	}{
		{"web-2", fleetflowv1alpha1.RecordRunCreated, "", false},
		{"api-7", fleetflowv1alpha1.RecordRunCreated, "", false},
		{"web-2", fleetflowv1alpha1.RecordApprovalRequested, "1503435956.000001", true},
		{"web-2", fleetflowv1alpha1.RecordApprovalGiven, "1503435956.000001", false},
		{"api-7", fleetflowv1alpha1.RecordRunFailed, "1503435956.000002", true},
	} {
		thread, broadcast := tell(step.run, step.kind)
		assert.Equal(t, step.thread, thread, step.kind)
		assert.Equal(t, step.broadcast, broadcast, step.kind)
	}
	refuses = "thread_not_found"
	var refused *delivery.RefusedError
	err := w.tell(t, "people/chat", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed))
	require.ErrorContains(t, err, "thread_not_found")
	assert.NotErrorAs(t, err, &refused, "it is tried again")
	refuses = ""
	thread, _ := tell("web-2", fleetflowv1alpha1.RecordRunFailed)
	assert.Empty(t, thread, "outside of the thread")
	thread, _ = tell("web-2", fleetflowv1alpha1.RecordRunDeleted)
	assert.Equal(t, "1503435956.000006", thread, "which is a new one")
	for i := range maxThreads {
		w.Sender.threads.note(channel, &Message{Thread: fmt.Sprint(i)}, "1.1")
	}
	assert.Len(t, w.Sender.threads.began, maxThreads)
	assert.Empty(t, w.Sender.threads.find(channel, &Message{Thread: "uid-web-2"}))
}

// What a channel has had is not sent once more when the rest is.
func TestAfterAFailureTheRestIsSent(t *testing.T) {
	r := &received{}
	r.answer = func(w http.ResponseWriter, _ *http.Request) {
		if len(r.bodies) == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	rule := ruleTo("people", "chat")
	w := newWorld(t, channel, rule, secretFor("chat", map[string]string{"value": serve(t, r)}))
	w.look(t, channel)
	w.look(t, rule)
	var records []fleetflowv1alpha1.AuditRecord
	for run := range 5 {
		records = append(records, w.fact(fmt.Sprintf("app-%d", run), fleetflowv1alpha1.RecordRunFailed))
	}
	require.ErrorContains(t, w.tell(t, "people/chat", records...), "503")
	w.look(t, channel)
	_, reason := statusOf(channel.Status.Conditions, "Ready")
	assert.Equal(t, fleetflowv1alpha1.ReasonUnreachable, reason)
	require.NoError(t, w.tell(t, "people/chat", records...))
	assert.Len(t, r.bodies, 6, "five, and the one that was not taken")
	require.NoError(t, w.tell(t, "people/chat", w.fact("app-0", fleetflowv1alpha1.RecordRunFailed)))
	assert.Len(t, r.bodies, 7, "nothing is remembered once all have arrived")
}

func TestRulesThatNameWhatThereIsNot(t *testing.T) {
	r := &received{}
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	rule := ruleTo("people", "chat", "nowhere")
	broken := ruleTo("broken", "chat")
	broken.Spec.When = "record.stage == 'prod'"
	w := newWorld(t, channel, rule, broken, secretFor("chat", map[string]string{"value": serve(t, r)}))
	w.look(t, channel)
	w.look(t, rule)
	status, reason := statusOf(rule.Status.Conditions, "Ready")
	assert.Equal(t, metav1.ConditionFalse, status)
	assert.Equal(t, fleetflowv1alpha1.ReasonUnknownChannel, reason)
	accepted, _ := statusOf(rule.Status.Conditions, "Accepted")
	assert.Equal(t, metav1.ConditionTrue, accepted)
	assert.Contains(t, <-w.events.Events, "nowhere")
	require.NoError(t, w.tell(t, "people/chat", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)), "the other channel is served")
	w.look(t, broken)
	accepted, reason = statusOf(broken.Status.Conditions, "Accepted")
	assert.Equal(t, metav1.ConditionFalse, accepted)
	assert.Equal(t, fleetflowv1alpha1.ReasonInvalidExpression, reason)
	assert.Len(t, w.routes.routes, 1)
	changes := w.routes.changes
	w.look(t, rule)
	w.look(t, channel)
	assert.Equal(t, changes, w.routes.changes, "nothing is put again that has not changed")
	require.NoError(t, w.client.Delete(t.Context(), rule))
	_, err := w.ReconcileRule(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(rule)})
	require.NoError(t, err)
	assert.Empty(t, w.routes.routes)
}

// A rule of which a channel waits for its place among the destinations says so, and is looked at when that is another one.
func TestARuleThatIsNotServedSaysSo(t *testing.T) {
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	rule := ruleTo("people", "chat")
	w := newWorld(t, channel, rule)
	w.look(t, rule)
	assert.Equal(t, rule.CreationTimestamp.Unix(), w.routes.routes[keyOf("people", "chat")].Since.Unix(), "the oldest are served")
	w.routes.unserved = map[delivery.Key]bool{keyOf("people", "chat"): true}
	for range 3 {
		w.noteService("people/chat")
	}
	require.Len(t, w.all, 1, "however many there are, the rules are looked at once")
	<-w.all
	w.look(t, rule)
	ready := meta.FindStatusCondition(rule.Status.Conditions, "Ready")
	assert.Equal(t, metav1.ConditionFalse, ready.Status)
	assert.Equal(t, fleetflowv1alpha1.ReasonTooManyDestinations, ready.Reason)
	assert.Equal(t, "Records go to the 64 oldest destinations, each a sink or a rule with one of its channels, and there are more: what is for chat waits", ready.Message)
	assert.Contains(t, <-w.events.Events, "64 oldest destinations")
	w.noteService("people/chat")
	assert.Empty(t, w.all, "nothing is another one")
	w.routes.unserved = nil
	w.noteService("people/chat")
	require.Len(t, w.all, 1)
	w.look(t, rule)
	assert.Equal(t, metav1.ConditionTrue, meta.FindStatusCondition(rule.Status.Conditions, "Ready").Status)
}

// begins notes what an engine knows when it begins.
type begins struct {
	routes *known
	with   int
}

func (b *begins) Start(context.Context) error {
	b.with = len(b.routes.routes)
	return nil
}

// An engine that knew a part of the ways would take records for complete that others are to get.
func TestTheEngineBeginsWithAllWays(t *testing.T) {
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	for isServed, want := range map[bool]int{true: 2, false: 0} {
		w := newWorld(t, channel, ruleTo("a", "chat"), ruleTo("b", "chat"))
		w.isServed = isServed
		engine := &begins{routes: w.routes}
		require.NoError(t, w.Before(engine).Start(t.Context()))
		assert.Equal(t, want, engine.with)
	}
}

// Two rules that ask for the same record in one channel: it is told once there, by the first.
func TestNothingIsToldTwiceInAChannel(t *testing.T) {
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	first, second := ruleTo("a", "chat"), ruleTo("b", "chat")
	first.Spec.Types = []string{"run.failed"}
	w := newWorld(t, channel, first, second)
	w.look(t, first)
	failed, stuck := w.fact("web-2", fleetflowv1alpha1.RecordRunFailed), w.fact("web-2", fleetflowv1alpha1.RecordRunStuck)
	a, b := w.routes.routes[delivery.Key{Kind: RouteKind, Name: "a/chat"}], w.routes.routes[delivery.Key{Kind: RouteKind, Name: "b/chat"}]
	assert.True(t, isWantedBy(t, a, &failed))
	assert.False(t, isWantedBy(t, b, &failed))
	assert.False(t, isWantedBy(t, a, &stuck))
	assert.True(t, isWantedBy(t, b, &stuck))
}

// A rule that is changed tells what happens from then on, and what still waited by it as it was.
func TestAChangedRuleTellsNothingOld(t *testing.T) {
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	rule := ruleTo("people", "chat")
	rule.Spec.Types = []string{"run.failed"}
	w := newWorld(t, channel, rule)
	w.look(t, rule)
	failed, succeeded := w.fact("web-1", fleetflowv1alpha1.RecordRunFailed), w.fact("web-1", fleetflowv1alpha1.RecordRunSucceeded)
	w.clock.Step(time.Hour)
	rule.Spec.Types = []string{"run.succeeded"}
	rule.Generation = 2
	require.NoError(t, w.client.Update(t.Context(), rule))
	w.look(t, rule)
	route := w.routes.routes[delivery.Key{Kind: RouteKind, Name: "people/chat"}]
	assert.True(t, isWantedBy(t, route, &failed), "it waited when the rule was changed")
	assert.False(t, isWantedBy(t, route, &succeeded))
	later := w.fact("web-2", fleetflowv1alpha1.RecordRunSucceeded)
	assert.True(t, isWantedBy(t, route, &later))
	assert.Equal(t, w.clock.Now().Unix(), rule.Status.SinceTime.Unix())
	// So it is by an agent that leads after this one.
	next := newWorld(t, channel, rule)
	next.look(t, rule)
	route = next.routes.routes[delivery.Key{Kind: RouteKind, Name: "people/chat"}]
	assert.False(t, isWantedBy(t, route, &succeeded))
	assert.True(t, isWantedBy(t, route, &later))
}

func TestAnExpressionThatGivesAnErrorHasOneEvent(t *testing.T) {
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	rule := ruleTo("people", "chat")
	rule.Spec.When = `record.data["ticket"] == "1"`
	w := newWorld(t, channel, rule)
	w.look(t, rule)
	route := w.routes.routes[delivery.Key{Kind: RouteKind, Name: "people/chat"}]
	for range 3 {
		record := w.fact("web-1", fleetflowv1alpha1.RecordRunFailed)
		assert.True(t, isWantedBy(t, route, &record), "people had better be told")
	}
	require.Len(t, w.events.Events, 1)
	assert.Contains(t, <-w.events.Events, "no such key: ticket")
}

func TestRulesSelectPlacements(t *testing.T) {
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	tiered, named := ruleTo("tiered", "chat"), ruleTo("named", "chat")
	tiered.Spec.PlacementSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
	named.Spec.PlacementSelector = &metav1.LabelSelector{MatchLabels: map[string]string{fleetflowv1alpha1.PlacementNameLabel: "gone"}}
	placement := placementv1beta1.Scope{}.NewPlacement("web")
	placement.SetLabels(map[string]string{"tier": "prod"})
	w := newWorld(t, channel, tiered, named, placement)
	w.look(t, tiered)
	of := func(rule, placement string) bool {
		record := w.fact("r", fleetflowv1alpha1.RecordRunFailed, func(s *fleetflowv1alpha1.AuditRecordSpec) { s.PlacementName = placement })
		route := w.routes.routes[delivery.Key{Kind: RouteKind, Name: rule + "/chat"}]
		return isWantedBy(t, route, &record)
	}
	assert.True(t, of("tiered", "web"))
	assert.False(t, of("tiered", "gone"), "of what is gone only the name is known")
	assert.True(t, of("named", "gone"))
}

func TestWhatChannelsMayUse(t *testing.T) {
	webhook := func(url string) fleetflowv1alpha1.NotificationChannelSpec {
		return fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelWebhook, Webhook: &fleetflowv1alpha1.WebhookChannel{URL: url, SigningSecret: key("ops")}}
	}
	signing := "whsec_" + base64.StdEncoding.EncodeToString([]byte("secret"))
	mailTo := fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelEmail, Email: &fleetflowv1alpha1.EmailChannel{
		Server: "smtp.example.com:587", From: "fleet@example.com", To: []string{"ops@example.com"}, UsernameSecret: new(key("ops")), PasswordSecret: new(key("ops")),
	}}
	for name, test := range map[string]struct {
		spec   fleetflowv1alpha1.NotificationChannelSpec
		secret *corev1.Secret
		reason string
	}{
		"no Secret":                             {webhook("https://hooks.example.invalid"), secretFor("else", nil), fleetflowv1alpha1.ReasonSecretNotFound},
		"the Secret of another channel":         {webhook("https://hooks.example.invalid"), relabelled(secretFor("ops", map[string]string{"value": signing}), "else"), fleetflowv1alpha1.ReasonSecretNotLabelled},
		"a Secret without a label":              {webhook("https://hooks.example.invalid"), relabelled(secretFor("ops", map[string]string{"value": signing}), ""), fleetflowv1alpha1.ReasonSecretNotLabelled},
		"a Secret without the key":              {webhook("https://hooks.example.invalid"), secretFor("ops", map[string]string{"other": signing}), fleetflowv1alpha1.ReasonSecretNotFound},
		"what is no key":                        {webhook("https://hooks.example.invalid"), secretFor("ops", map[string]string{"value": "hunter2-not-a-key!"}), fleetflowv1alpha1.ReasonInvalidSecret},
		"the metadata of a cloud":               {webhook("https://169.254.169.254"), secretFor("ops", map[string]string{"value": signing}), fleetflowv1alpha1.ReasonAddressRefused},
		"what is no url":                        {fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelTeams, Teams: &fleetflowv1alpha1.TeamsChannel{URLSecret: key("ops")}}, secretFor("ops", map[string]string{"value": "hunter2"}), fleetflowv1alpha1.ReasonInvalidSecret},
		"an account that is not for a server":   {mailTo, secretFor("ops", map[string]string{"value": "hunter2"}), fleetflowv1alpha1.ReasonSecretNotForServer},
		"an account that is for another server": {mailTo, secretFor("ops", map[string]string{"value": "hunter2"}, fleetflowv1alpha1.ChannelServerAnnotation, "smtp.other.example:587"), fleetflowv1alpha1.ReasonSecretNotForServer},
		"an account that is for the server":     {mailTo, secretFor("ops", map[string]string{"value": "hunter2"}, fleetflowv1alpha1.ChannelServerAnnotation, "smtp.example.com:587"), fleetflowv1alpha1.ReasonAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			channel := channelNamed("ops", test.spec)
			w := newWorld(t, channel, test.secret)
			w.look(t, channel)
			status, reason := statusOf(channel.Status.Conditions, "Accepted")
			assert.Equal(t, test.reason, reason)
			assert.Equal(t, test.reason == fleetflowv1alpha1.ReasonAccepted, status == metav1.ConditionTrue)
			text, err := json.Marshal(channel.Status)
			require.NoError(t, err)
			assert.NotContains(t, string(text), "hunter2")
		})
	}
}

func relabelled(secret *corev1.Secret, channel string) *corev1.Secret {
	secret.Labels = map[string]string{fleetflowv1alpha1.ChannelLabel: channel}
	return secret
}

// A test is sent once for each time that it is asked for.
func TestATestOfAChannel(t *testing.T) {
	r := &received{}
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	channel.Annotations = map[string]string{fleetflowv1alpha1.TestMessageAnnotation: "1"}
	w := newWorld(t, channel, secretFor("chat", map[string]string{"value": serve(t, r)}))
	w.look(t, channel)
	w.look(t, channel)
	require.Len(t, r.bodies, 1)
	assert.Contains(t, r.bodies[0], "Test of channel chat")
	require.NotNil(t, channel.Status.LastTest)
	assert.True(t, channel.Status.LastTest.Delivered)
	assert.Equal(t, "1", channel.Status.LastTest.ID)
	r.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }
	channel.Annotations[fleetflowv1alpha1.TestMessageAnnotation] = "2"
	require.NoError(t, w.client.Update(t.Context(), channel))
	w.look(t, channel)
	assert.False(t, channel.Status.LastTest.Delivered)
	assert.Contains(t, channel.Status.LastTest.Message, "410")
}

// postbox is a server of mail that wants STARTTLS and an account.
type postbox struct {
	address string
	pool    []byte // the certificate that it shows, in PEM
	noTLS   bool
	refuses bool
	// refusesTo are mailboxes that there are not, refusesData has no letter taken, and breaksOff ends the connection after one.
	refusesTo              []string
	refusesData, breaksOff bool

	letters chan string
	heard   chan string
}

func openPostbox(t *testing.T, p *postbox) *postbox {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	p.pool = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	p.address = listener.Addr().String()
	p.letters = make(chan string, 10)
	p.heard = make(chan string, 1000)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go p.talk(connection, config)
		}
	}()
	return p
}

// talk speaks SMTP.
func (p *postbox) talk(connection net.Conn, config *tls.Config) {
	defer func() { _ = connection.Close() }()
	text := textproto.NewConn(connection)
	_ = text.PrintfLine("220 postbox")
	isEncrypted := false
	for {
		line, err := text.ReadLine()
		if err != nil {
			return
		}
		p.heard <- line
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		switch {
		case verb == "EHLO" && isEncrypted:
			_ = text.PrintfLine("250-postbox\r\n250 AUTH PLAIN")
		case verb == "EHLO" && p.noTLS:
			_ = text.PrintfLine("250-postbox\r\n250 AUTH PLAIN")
		case verb == "EHLO":
			_ = text.PrintfLine("250-postbox\r\n250 STARTTLS")
		case verb == "STARTTLS":
			_ = text.PrintfLine("220 go on")
			connection = tls.Server(connection, config)
			text = textproto.NewConn(connection)
			isEncrypted = true
		case verb == "AUTH" && p.refuses:
			_ = text.PrintfLine("535 no: %s", line)
		case verb == "AUTH":
			_ = text.PrintfLine("235 hello")
		case verb == "RCPT" && slices.ContainsFunc(p.refusesTo, func(to string) bool { return strings.Contains(line, to) }):
			_ = text.PrintfLine("550 no such mailbox")
		case verb == "DATA" && p.refusesData:
			_ = text.PrintfLine("554 spam")
		case verb == "DATA":
			_ = text.PrintfLine("354 go on")
			letter, err := io.ReadAll(text.DotReader())
			if err != nil {
				return
			}
			p.letters <- string(letter)
			_ = text.PrintfLine("250 taken")
			if p.breaksOff {
				return
			}
		case verb == "QUIT":
			_ = text.PrintfLine("221 bye")
			return
		default:
			_ = text.PrintfLine("250 ok")
		}
	}
}

func mailWorld(t *testing.T, p *postbox) (*world, *fleetflowv1alpha1.NotificationChannel) {
	t.Helper()
	channel := channelNamed("mail", fleetflowv1alpha1.NotificationChannelSpec{
		Type: fleetflowv1alpha1.ChannelEmail, DashboardURL: "https://fleet.example.com", Email: &fleetflowv1alpha1.EmailChannel{
			Server: p.address, From: "fleet@example.com", To: []string{"ops@example.com", "oncall@example.com"},
			UsernameSecret: &fleetflowv1alpha1.ChannelSecret{Name: "mail-secret", Key: "username"},
			PasswordSecret: &fleetflowv1alpha1.ChannelSecret{Name: "mail-secret", Key: "password"}, CAConfigMap: &fleetflowv1alpha1.ChannelConfigMap{Name: "ca", Key: "ca.crt"},
		},
	})
	rule := ruleTo("people", "mail")
	w := newWorld(t, channel, rule, secretFor("mail", map[string]string{"username": "fleet", "password": "hunter2-secret"}, fleetflowv1alpha1.ChannelServerAnnotation, p.address),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: agents, Name: "ca"}, Data: map[string]string{"ca.crt": string(p.pool)}})
	w.look(t, channel)
	w.look(t, rule)
	status, _ := statusOf(channel.Status.Conditions, "Accepted")
	require.Equal(t, metav1.ConditionTrue, status)
	return w, channel
}

func TestMailIsHandedOverEncrypted(t *testing.T) {
	p := openPostbox(t, &postbox{})
	w, _ := mailWorld(t, p)
	require.NoError(t, w.tell(t, "people/mail", w.fact("web-2", fleetflowv1alpha1.RecordApprovalRequested, func(s *fleetflowv1alpha1.AuditRecordSpec) {
		s.Message = "look <script>alert(1)</script>\r\nBcc: x@example.com"
	})))
	letter, err := mail.ReadMessage(bufio.NewReader(strings.NewReader(<-p.letters)))
	require.NoError(t, err)
	assert.Equal(t, "Stage prod of run web-2 waits for an approval (placement web)", letter.Header.Get("Subject"))
	assert.Contains(t, letter.Header.Get("To"), "oncall@example.com")
	assert.Empty(t, letter.Header.Get("Bcc"))
	assert.Contains(t, letter.Header.Get("Message-Id"), "<msg_")
	body, err := io.ReadAll(letter.Body)
	require.NoError(t, err)
	whole := strings.ReplaceAll(string(body), "=\n", "")
	assert.Contains(t, whole, "kubectl fleet approve web-2 --stage prod")
	assert.Contains(t, whole, "https://fleet.example.com/runs/web-2")
	assert.Contains(t, whole, "text/html")
	assert.Contains(t, whole, "&lt;script&gt;")
}

func TestNoMailAndNoPasswordGoInTheClear(t *testing.T) {
	p := openPostbox(t, &postbox{noTLS: true})
	w, channel := mailWorld(t, p)
	require.ErrorContains(t, w.tell(t, "people/mail", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)), "STARTTLS")
	close(p.heard)
	for line := range p.heard {
		assert.NotContains(t, strings.ToUpper(line), "AUTH")
		assert.NotContains(t, strings.ToUpper(line), "MAIL")
	}
	w.look(t, channel)
	status, _ := statusOf(channel.Status.Conditions, "Ready")
	assert.Equal(t, metav1.ConditionFalse, status)
}

func TestAServerOfMailThatShowsAnotherCertificateGetsNothing(t *testing.T) {
	p := openPostbox(t, &postbox{})
	w, _ := mailWorld(t, p)
	other := openPostbox(t, &postbox{})
	require.NoError(t, w.client.Update(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: agents, Name: "ca"}, Data: map[string]string{"ca.crt": string(other.pool)}}))
	require.ErrorContains(t, w.tell(t, "people/mail", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)), "certificate")
	assert.Empty(t, p.letters)
}

func TestAnAccountThatIsRefusedIsNotShown(t *testing.T) {
	p := openPostbox(t, &postbox{refuses: true})
	w, channel := mailWorld(t, p)
	err := w.tell(t, "people/mail", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed))
	require.ErrorContains(t, err, "answers 535 to the username and the password")
	var refused *delivery.RefusedError
	require.ErrorAs(t, err, &refused)
	secret := base64.StdEncoding.EncodeToString([]byte("\x00fleet\x00hunter2-secret"))
	assert.NotContains(t, err.Error(), secret)
	assert.NotContains(t, err.Error(), "hunter2")
	w.look(t, channel)
	text, err := json.Marshal(channel.Status)
	require.NoError(t, err)
	assert.NotContains(t, string(text), secret)
}

// One mailbox of many that is refused silences none of the others, and Ready names it.
func TestAMailboxThatIsRefusedSilencesNoOther(t *testing.T) {
	p := openPostbox(t, &postbox{refusesTo: []string{"gone@example.com"}})
	w, channel := mailWorld(t, p)
	channel.Spec.Email.To = []string{"ops@example.com", "gone@example.com", "oncall@example.com"}
	channel.Generation = 2
	require.NoError(t, w.client.Update(t.Context(), channel))
	w.look(t, channel)
	require.NoError(t, w.tell(t, "people/mail", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)))
	require.Len(t, p.letters, 1)
	letter := <-p.letters
	assert.Contains(t, letter, "oncall@example.com")
	assert.NotContains(t, letter, "gone@example.com")
	w.look(t, channel)
	ready := meta.FindStatusCondition(channel.Status.Conditions, "Ready")
	assert.Equal(t, metav1.ConditionFalse, ready.Status)
	assert.Contains(t, ready.Message, "refuses gone@example.com")
	w, _ = mailWorld(t, openPostbox(t, &postbox{refusesTo: []string{"ops@", "oncall@"}}))
	var refused *delivery.RefusedError
	require.ErrorAs(t, w.tell(t, "people/mail", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)), &refused)
	assert.False(t, refused.Content)
}

// A letter that was taken is not sent again because the server then breaks off; one whose text is refused says nothing of the next.
func TestWhatAServerOfMailSaysOfALetter(t *testing.T) {
	p := openPostbox(t, &postbox{breaksOff: true})
	w, _ := mailWorld(t, p)
	require.NoError(t, w.tell(t, "people/mail", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)))
	require.Len(t, p.letters, 1)
	p = openPostbox(t, &postbox{refusesData: true})
	w, _ = mailWorld(t, p)
	var refused *delivery.RefusedError
	require.ErrorAs(t, w.tell(t, "people/mail", w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)), &refused)
	assert.True(t, refused.Content)
}

// What a channel has refused is tried again once it takes another message, and Ready is False until then.
func TestAChannelThatTakesMessagesAgainGetsWhatItHasRefused(t *testing.T) {
	r := &received{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }}
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	a, b := ruleTo("a", "chat"), ruleTo("b", "chat")
	a.Spec.Types, b.Spec.Types = []string{"run.failed"}, []string{"run.stuck"}
	w := newWorld(t, channel, a, b, secretFor("chat", map[string]string{"value": serve(t, r)}))
	w.look(t, channel)
	w.look(t, a)
	_, reason := statusOf(channel.Status.Conditions, "Ready")
	assert.Equal(t, fleetflowv1alpha1.ReasonNotTried, reason, "nothing is known of what was never tried")
	of := func() string { return w.routes.routes[delivery.Key{Kind: RouteKind, Name: "a/chat"}].Version }
	before := of()
	require.Error(t, w.tell(t, "a/chat", w.fact("web-1", fleetflowv1alpha1.RecordRunFailed)))
	w.look(t, channel)
	assert.Equal(t, before, of())
	r.answer = nil
	channel.Annotations = map[string]string{fleetflowv1alpha1.TestMessageAnnotation: "1"}
	require.NoError(t, w.client.Update(t.Context(), channel))
	w.look(t, channel)
	assert.NotEqual(t, before, of(), "the test has arrived")
	before = of()
	r.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
	require.Error(t, w.tell(t, "a/chat", w.fact("web-1", fleetflowv1alpha1.RecordRunFailed)))
	r.answer = nil
	require.NoError(t, w.tell(t, "b/chat", w.fact("web-1", fleetflowv1alpha1.RecordRunStuck)))
	assert.Equal(t, before, of())
	w.look(t, channel)
	assert.NotEqual(t, before, of(), "the message of another rule has arrived")
	status, _ := statusOf(channel.Status.Conditions, "Ready")
	assert.Equal(t, metav1.ConditionTrue, status)
	before = of()
	require.NoError(t, w.tell(t, "b/chat", w.fact("web-1", fleetflowv1alpha1.RecordRunStuck)))
	w.look(t, channel)
	assert.Equal(t, before, of(), "nothing was refused since")
}

// A channel whose authorities are others is tried again.
func TestOtherAuthoritiesAreAnotherChannel(t *testing.T) {
	p := openPostbox(t, &postbox{})
	w, channel := mailWorld(t, p)
	of := func() string { return w.routes.routes[delivery.Key{Kind: RouteKind, Name: "people/mail"}].Version }
	before := of()
	require.NoError(t, w.client.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: agents, Name: "ca"}, Data: map[string]string{"ca.crt": string(p.pool) + "\n"}}))
	w.look(t, channel)
	assert.NotEqual(t, before, of())
}

// What is wrong with a channel is cut before it is written: a status that is too long is not taken.
func TestWhatIsWrongWithAChannelIsCut(t *testing.T) {
	done := outcomeOf(errors.New(strings.Repeat("trouble ", 10_000)), time.Now())
	assert.LessOrEqual(t, len(done.why), maxWhy)
}

// A channel that is slow gets what there is time for, and the rest soon after: that is no failure of the channel.
func TestASlowChannelGetsTheRestLater(t *testing.T) {
	r := &received{}
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	rule := ruleTo("people", "chat")
	w := newWorld(t, channel, rule, secretFor("chat", map[string]string{"value": serve(t, r)}))
	w.look(t, channel)
	w.look(t, rule)
	route := w.routes.routes[delivery.Key{Kind: RouteKind, Name: "people/chat"}]
	ctx, stop := context.WithTimeout(t.Context(), reserve-time.Second)
	defer stop()
	records := []fleetflowv1alpha1.AuditRecord{w.fact("web-1", fleetflowv1alpha1.RecordRunFailed), w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)}
	var later *delivery.RetryError
	require.ErrorAs(t, route.To.Deliver(ctx, records), &later)
	assert.Len(t, r.bodies, 1)
	w.look(t, channel)
	status, _ := statusOf(channel.Status.Conditions, "Ready")
	assert.Equal(t, metav1.ConditionTrue, status)
	require.NoError(t, route.To.Deliver(t.Context(), records))
	assert.Len(t, r.bodies, 2)
}

// A rule that is edited, and broken on the way, loses nothing that waits; and another rule of the channel tells none of it once more.
func TestAnEditedRuleLosesNothingAndTellsNothingTwice(t *testing.T) {
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	other := channelNamed("other", channel.Spec)
	a, b := ruleTo("a", "chat"), ruleTo("b", "chat")
	a.Spec.Types = []string{"run.failed"}
	w := newWorld(t, channel, other, a, b)
	w.look(t, a)
	wants := func(way string, record fleetflowv1alpha1.AuditRecord) bool {
		route, is := w.routes.routes[delivery.Key{Kind: RouteKind, Name: way}]
		return is && isWantedBy(t, route, &record)
	}
	edit := func(change func(*fleetflowv1alpha1.NotificationRuleSpec)) {
		w.clock.Step(time.Hour)
		change(&a.Spec)
		a.Generation++
		require.NoError(t, w.client.Update(t.Context(), a))
		w.look(t, a)
	}
	first := w.fact("web-1", fleetflowv1alpha1.RecordRunFailed)
	edit(func(s *fleetflowv1alpha1.NotificationRuleSpec) { s.When = "record.stage == 'prod'" })
	accepted, _ := statusOf(a.Status.Conditions, "Accepted")
	require.Equal(t, metav1.ConditionFalse, accepted)
	assert.True(t, wants("a/chat", first), "it waited when the rule broke")
	assert.False(t, wants("b/chat", first), "it is told already")
	broken := w.fact("web-2", fleetflowv1alpha1.RecordRunFailed)
	assert.False(t, wants("a/chat", broken), "a rule that is broken tells nothing new")
	assert.True(t, wants("b/chat", broken))
	edit(func(s *fleetflowv1alpha1.NotificationRuleSpec) {
		s.When = ""
		s.ChannelRefs = append(s.ChannelRefs, fleetflowv1alpha1.NotificationChannelReference{Name: "other"})
	})
	edit(func(s *fleetflowv1alpha1.NotificationRuleSpec) { s.Types = []string{"run.stuck"} })
	assert.True(t, wants("a/chat", first), "it waits still")
	assert.False(t, wants("b/chat", first))
	assert.False(t, wants("a/chat", broken))
	assert.True(t, wants("b/chat", broken))
	assert.False(t, wants("a/other", first), "the rule told nothing there then")
	// An agent that leads after this one knows it by the mark.
	w = newWorld(t, channel, other, a, b)
	w.look(t, a)
	first.Status.Deliveries = []fleetflowv1alpha1.AuditDelivery{{Kind: RouteKind, Name: "a/chat"}}
	assert.False(t, wants("b/chat", first))
}
