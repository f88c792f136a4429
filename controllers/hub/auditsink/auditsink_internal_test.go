package auditsink

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
	"github.com/fleetflow/fleetflow/test/fixture"
)

var start = time.Date(2026, 11, 21, 21, 52, 14, 0, time.UTC)

// routed is what a reconciler makes known.
type routed struct {
	routes  map[delivery.Key]delivery.Route
	puts    int
	reports map[delivery.Key]delivery.Report
}

func (r *routed) Put(route delivery.Route)                { r.routes[route.Key] = route; r.puts++ }
func (r *routed) Remove(key delivery.Key)                 { delete(r.routes, key) }
func (r *routed) Report(key delivery.Key) delivery.Report { return r.reports[key] }
func (r *routed) OnChange(_ string, _ func(name string))  {}
func (r *routed) only(t *testing.T) (only delivery.Route) {
	t.Helper()
	require.Len(t, r.routes, 1)
	for _, only = range r.routes {
		break
	}
	return only
}

// bench is a reconciler with a hub in memory.
type bench struct {
	*Reconciler
	hub    client.WithWatch
	routed *routed
	events *events.FakeRecorder
	clock  *clocktesting.FakeClock
	stdout *bytes.Buffer
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{
		hub:    fixture.NewClientBuilder(fixture.Scheme(t, corev1.AddToScheme)).WithObjects(objects...).WithStatusSubresource(&fleetflowv1alpha1.AuditSink{}).Build(),
		routed: &routed{routes: map[delivery.Key]delivery.Route{}, reports: map[delivery.Key]delivery.Report{}}, events: events.NewFakeRecorder(100),
		clock: clocktesting.NewFakeClock(start), stdout: &bytes.Buffer{},
	}
	sources := &outbound.Client{Caller: outbound.Caller{Guard: outbound.Guard{AllowLoopback: true}}, Live: b.hub, Namespace: "fleet-system"}
	b.Reconciler = NewReconciler(b.hub, sources, b.routed, b.events, b.clock, t.TempDir())
	b.Stdout = b.stdout
	return b
}

func (b *bench) look(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "siem"}})
	require.NoError(t, err)
	return result
}

func (b *bench) sink(t *testing.T) *fleetflowv1alpha1.AuditSink {
	t.Helper()
	sink := &fleetflowv1alpha1.AuditSink{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "siem"}, sink))
	return sink
}

func (b *bench) ready(t *testing.T) *metav1.Condition {
	t.Helper()
	return meta.FindStatusCondition(b.sink(t).Status.Conditions, "Ready")
}

func sinkOf(spec fleetflowv1alpha1.AuditSinkSpec) *fleetflowv1alpha1.AuditSink {
	return &fleetflowv1alpha1.AuditSink{ObjectMeta: metav1.ObjectMeta{Name: "siem", UID: "uid-1", Generation: 1, CreationTimestamp: metav1.NewTime(start)}, Spec: spec}
}

func webhookAt(url string, auth *fleetflowv1alpha1.MetricSourceAuth) *fleetflowv1alpha1.AuditSink {
	return sinkOf(fleetflowv1alpha1.AuditSinkSpec{Type: "Webhook", Webhook: &fleetflowv1alpha1.AuditSinkWebhook{
		AuditSinkServer: fleetflowv1alpha1.AuditSinkServer{URL: url, Auth: auth}, Batch: 50,
	}})
}

func secretFor(url string, data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-system", Name: "siem", Labels: map[string]string{"fleetflow.io/audit-sink": "siem"},
		Annotations: map[string]string{"fleetflow.io/audit-sink-url": url},
	}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

func in(key string) *fleetflowv1alpha1.MetricSourceSecret {
	return &fleetflowv1alpha1.MetricSourceSecret{Name: "siem", Key: key}
}

func recordsOf(n int) (records []fleetflowv1alpha1.AuditRecord) {
	for i := range n {
		sequence := int64(i + 1)
		id := fleetflowv1alpha1.RecordID("run-uid", fleetflowv1alpha1.RecordApprovalGiven, fmt.Sprint(sequence))
		records = append(records, fleetflowv1alpha1.AuditRecord{
			ObjectMeta: metav1.ObjectMeta{Name: fleetflowv1alpha1.RecordName("run-uid", sequence), CreationTimestamp: metav1.NewTime(start)},
			Spec: fleetflowv1alpha1.AuditRecordSpec{
				ID: id, Type: fleetflowv1alpha1.RecordApprovalGiven, Time: metav1.NewTime(start), Sequence: sequence, PlacementName: "web", UpdateRunName: "web-2",
				StageName: "canary", Comment: "CAB-17", Message: "jane has approved", Actor: &fleetflowv1alpha1.AuditActor{Username: "jane", Verified: true, Channel: "Kubectl"},
				SubjectRef: fleetflowv1alpha1.AuditSubjectReference{APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "ClusterStagedUpdateRun", Name: "web-2", UID: "run-uid"},
				Data:       map[string]fleetflowv1alpha1.AuditValue{"approvalRequest": "web-2-canary"},
			},
		})
	}
	return records
}

// receiver takes webhooks.
type receiver struct {
	*httptest.Server
	headers []http.Header
	bodies  [][]byte
	answer  func(w http.ResponseWriter, r *http.Request)
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.headers = append(r.headers, request.Header)
		r.bodies = append(r.bodies, body)
		if r.answer != nil {
			r.answer(w, request)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

const planted = "planted-7c1f9a"

var (
	oldKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte("an old key of some length "+planted))
	newKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte("a new key of some length "+planted))
)

// Acceptance 7 of the design: what is sent is signed as the standard's own library says, by either key while keys change, and what was captured and is
// sent once more after six minutes is refused.
func TestAcceptance7WebhooksAreSignedAndCannotBeReplayed(t *testing.T) {
	to := newReceiver(t)
	b := newBench(t, webhookAt(to.URL, &fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthHMAC, Secret: in("keys")}),
		secretFor(to.URL, map[string]string{"keys": oldKey + "\n" + newKey + "\n"}))
	b.look(t)
	route := b.routed.only(t)
	assert.Equal(t, 50, route.Batch)
	now := time.Now() // the library knows no other clock
	b.clock.SetTime(now)
	require.NoError(t, route.To.Deliver(t.Context(), recordsOf(3)))
	b.clock.SetTime(now.Add(-6 * time.Minute))
	require.NoError(t, route.To.Deliver(t.Context(), recordsOf(3)))
	for _, key := range []string{oldKey, newKey} {
		library, err := standardwebhooks.NewWebhook(key)
		require.NoError(t, err)
		require.NoError(t, library.Verify(to.bodies[0], to.headers[0]))
		require.Error(t, library.Verify(append(to.bodies[0], ' '), to.headers[0]), "another body")
		require.NoError(t, library.VerifyIgnoringTimestamp(to.bodies[1], to.headers[1]))
		require.ErrorContains(t, library.Verify(to.bodies[1], to.headers[1]), "old", "a replay")
	}
	other, err := standardwebhooks.NewWebhook("whsec_" + base64.StdEncoding.EncodeToString([]byte("another key of some length")))
	require.NoError(t, err)
	require.Error(t, other.Verify(to.bodies[0], to.headers[0]))
	assert.Equal(t, to.headers[0].Get("webhook-id"), to.headers[1].Get("webhook-id"), "the same records have the same id")

	assert.Equal(t, "application/cloudevents-batch+json", to.headers[0].Get("Content-Type"))
	var sent []map[string]any
	require.NoError(t, json.Unmarshal(to.bodies[0], &sent))
	require.Len(t, sent, 3)
	first := sent[0]
	delete(first, "data")
	assert.Equal(t, map[string]any{
		"specversion": "1.0", "id": recordsOf(1)[0].Spec.ID, "source": "/placement.kubernetes-fleet.io/v1beta1/ClusterStagedUpdateRun/web-2",
		"type": "io.fleetflow.approval.given", "subject": "run-uid", "time": "2026-11-21T21:52:14Z", "datacontenttype": "application/json",
	}, first)
}

// Acceptance 6 of the design, of what delivers: no credential, whatever a receiver repeats of it, is in a status, an event or an error.
func TestAcceptance6NoCredentialIsShown(t *testing.T) {
	to := newReceiver(t)
	to.answer = func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "you are "+r.Header.Get("Authorization")+strings.Repeat("x", 60_000))
	}
	b := newBench(t, webhookAt(to.URL, &fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthBearer, Secret: in("token")}),
		secretFor(to.URL, map[string]string{"token": planted + "\n"}))
	b.look(t)
	err := b.routed.only(t).To.Deliver(t.Context(), recordsOf(1))
	require.ErrorContains(t, err, "the sink answers 401: you are Bearer [redacted]")
	assert.Less(t, len(err.Error()), 256)
	refused, is := errors.AsType[*delivery.RefusedError](err)
	require.True(t, is)
	assert.False(t, refused.Content)
	b.routed.reports[keyOf("siem")] = delivery.Report{Pending: 1, OldestPending: start, LastError: err.Error(), Refused: true}
	b.clock.Step(writeEvery)
	b.look(t)
	text, err := json.Marshal(b.sink(t).Status)
	require.NoError(t, err)
	assert.Contains(t, string(text), "the sink answers 401")
	assert.NotContains(t, string(text), planted)
	require.Len(t, b.events.Events, 1)
	event := <-b.events.Events
	assert.Contains(t, event, "Warning AuditSinkNotReady Not tried again until the spec or a Secret changes: the sink answers 401")
	assert.NotContains(t, event, planted)
}

func TestWhatReceiversDo(t *testing.T) {
	type judged struct {
		refused, content bool
		after            time.Duration
		says             string
	}
	answers := func(code int, header ...string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
		}
	}
	elsewhere := newReceiver(t)
	huge := func(code int) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			part := bytes.Repeat([]byte("y"), 1<<20)
			for range 1024 { // a gigabyte, if anybody read it
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}
	}
	breaking := func(code int) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(code)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	for sentence, test := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   *judged
	}{
		"takes it":                         {answers(200), nil},
		"takes it for later":               {answers(202), nil},
		"takes it, and answers a gigabyte": {huge(200), nil},
		"takes it, and breaks off":         {breaking(200), nil},
		"refuses it, and breaks off":       {breaking(401), &judged{refused: true, says: "unexpected EOF"}},
		"fails with a gigabyte":            {huge(500), &judged{says: "the answer is longer than 65536 bytes"}},
		"fails":                            {answers(500), &judged{says: "the sink answers 500"}},
		"has a conflict":                   {answers(409), &judged{says: "409"}},
		"is busy":                          {answers(429, "Retry-After", "120"), &judged{after: 2 * time.Minute, says: "429"}},
		"is busy until":                    {answers(503, "Retry-After", start.Add(time.Minute).Format(http.TimeFormat)), &judged{after: time.Minute, says: "503"}},
		"is busy, and says no more":        {answers(503), &judged{says: "503"}},
		"knows nobody":                     {answers(401), &judged{refused: true, says: "401"}},
		"is not there":                     {answers(404), &judged{refused: true, says: "404"}},
		"does not like it":                 {answers(422), &judged{refused: true, content: true, says: "422"}},
		"finds it too long":                {answers(413), &judged{refused: true, content: true, says: "413"}},
		"sends elsewhere":                  {answers(307, "Location", elsewhere.URL), &judged{refused: true, says: "the sink answers with a redirect (307), which is not followed"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			to := newReceiver(t)
			to.answer = test.answer
			b := newBench(t, webhookAt(to.URL, nil))
			b.look(t)
			err := b.routed.only(t).To.Deliver(t.Context(), recordsOf(2))
			if test.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want.says)
			got := judged{says: test.want.says}
			if refused, is := errors.AsType[*delivery.RefusedError](err); is {
				got.refused = true
				got.content = refused.Content
			}
			if asked, is := errors.AsType[*delivery.RetryError](err); is {
				got.after = asked.After
			}
			assert.Equal(t, *test.want, got)
		})
	}
	assert.Empty(t, elsewhere.bodies, "a redirect is not followed")
}

// An answer that comes after an hour is none: nothing waits for longer than the engine lets it.
func TestAReceiverThatIsSlowForAnHour(t *testing.T) {
	let := make(chan struct{})
	to := newReceiver(t)
	to.answer = func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-let:
		case <-r.Context().Done():
		}
	}
	defer close(let)
	b := newBench(t, webhookAt(to.URL, nil))
	b.look(t)
	ctx, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	err := b.routed.only(t).To.Deliver(ctx, recordsOf(1))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAReceiverWithTheCertificateOfAnotherName(t *testing.T) {
	called := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	sink := webhookAt(server.URL, nil)
	sink.Spec.Webhook.TLS = &fleetflowv1alpha1.MetricSourceTLS{CASecret: in("ca.crt"), ServerName: "siem.invalid"}
	b := newBench(t, sink, secretFor(server.URL, map[string]string{"ca.crt": ca}))
	b.look(t)
	err := b.routed.only(t).To.Deliver(t.Context(), recordsOf(1))
	require.ErrorContains(t, err, "the sink cannot be reached: tls: failed to verify certificate: x509: certificate is valid for example.com")
	assert.False(t, called)
	sink.Spec.Webhook.TLS.ServerName = "example.com"
	sink.Generation++
	sink.ResourceVersion = ""
	stored := b.sink(t)
	stored.Spec = sink.Spec
	stored.Generation++
	require.NoError(t, b.hub.Update(t.Context(), stored))
	b.look(t)
	require.NoError(t, b.routed.only(t).To.Deliver(t.Context(), recordsOf(1)))
	assert.True(t, called)
}

func TestASinkWithoutItsSecretGetsNothing(t *testing.T) {
	to := newReceiver(t)
	b := newBench(t, webhookAt(to.URL, &fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthBearer, Secret: in("token")}))
	assert.Equal(t, lookAgain, b.look(t).RequeueAfter)
	assert.Equal(t, "SecretNotFound", b.ready(t).Reason)
	err := b.routed.only(t).To.Deliver(t.Context(), recordsOf(1))
	_, refused := errors.AsType[*delivery.RefusedError](err)
	assert.True(t, refused)
	assert.Empty(t, to.bodies)
	before := b.routed.only(t).Version

	wrong := secretFor("https://other.example", map[string]string{"token": planted})
	require.NoError(t, b.hub.Create(t.Context(), wrong))
	b.clock.Step(writeEvery)
	b.look(t)
	assert.Equal(t, "SecretNotForURL", b.ready(t).Reason, "a writer of sinks gets no credential that is for another server")
	wrong.Annotations["fleetflow.io/audit-sink-url"] = to.URL
	wrong.Labels["fleetflow.io/audit-sink"] = "other"
	require.NoError(t, b.hub.Update(t.Context(), wrong))
	b.clock.Step(writeEvery)
	b.look(t)
	assert.Equal(t, "SecretNotLabelled", b.ready(t).Reason, "nor one that is for another sink")
	wrong.Labels["fleetflow.io/audit-sink"] = "siem"
	require.NoError(t, b.hub.Update(t.Context(), wrong))
	b.clock.Step(writeEvery)
	b.look(t)
	assert.Equal(t, "SinkReady", b.ready(t).Reason)
	assert.NotEqual(t, before, b.routed.only(t).Version, "what was refused is tried again")
	require.NoError(t, b.routed.only(t).To.Deliver(t.Context(), recordsOf(1)))
	assert.Equal(t, "Bearer "+planted, to.headers[0].Get("Authorization"))
	puts := b.routed.puts
	b.clock.Step(writeEvery)
	b.look(t)
	assert.Equal(t, puts, b.routed.puts, "nothing has changed")
}

func TestAnAddressThatIsNotCalled(t *testing.T) {
	to := newReceiver(t)
	b := newBench(t, webhookAt(to.URL, nil))
	b.Outbound.Guard = outbound.Guard{}
	b.look(t)
	assert.Equal(t, "AddressRefused", b.ready(t).Reason)
	assert.Error(t, b.routed.only(t).To.Deliver(t.Context(), recordsOf(1)))
	assert.Empty(t, to.bodies)
}

func TestTheStatusIsWrittenOnceAMinute(t *testing.T) {
	b := newBench(t, webhookAt("https://siem.example.com", nil))
	b.look(t)
	assert.Equal(t, metav1.ConditionTrue, b.ready(t).Status)
	key := keyOf("siem")
	b.routed.reports[key] = delivery.Report{Delivered: 7, Pending: 3, OldestPending: start, LastError: "the sink answers 500"}
	assert.Equal(t, writeEvery, b.look(t).RequeueAfter)
	assert.Zero(t, b.sink(t).Status.Delivered)
	b.clock.Step(writeEvery)
	b.look(t)
	got := b.sink(t).Status
	assert.Equal(t, []any{int64(7), int64(3), "the sink answers 500"}, []any{got.Delivered, got.Pending, got.LastError})
	assert.Equal(t, start, got.OldestPendingTime.UTC())
	assert.Equal(t, "Unreachable", b.ready(t).Reason)
	assert.Equal(t, "Warning AuditSinkNotReady the sink answers 500", <-b.events.Events)

	b.routed.reports[key] = delivery.Report{Delivered: 10}
	b.clock.Step(writeEvery)
	b.look(t)
	got = b.sink(t).Status
	assert.Equal(t, int64(10), got.Delivered)
	assert.Nil(t, got.OldestPendingTime)
	assert.Equal(t, metav1.ConditionTrue, b.ready(t).Status)
	assert.Equal(t, "Normal AuditSinkReady The sink takes records again", <-b.events.Events)

	// The next agent that leads counts on.
	next := NewReconciler(b.hub, b.Outbound, b.routed, b.events, b.clock, "")
	b.routed.reports[key] = delivery.Report{Delivered: 2}
	_, err := next.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "siem"}})
	require.NoError(t, err)
	assert.Equal(t, int64(12), b.sink(t).Status.Delivered)

	require.NoError(t, b.hub.Delete(t.Context(), b.sink(t)))
	b.look(t)
	assert.Empty(t, b.routed.routes)
}

func TestAFileHasALineForEachRecord(t *testing.T) {
	b := newBench(t, sinkOf(fleetflowv1alpha1.AuditSinkSpec{Type: "File", File: &fleetflowv1alpha1.AuditSinkFile{Name: "audit.jsonl", MaxSizeMiB: 1, Keep: 2}}))
	b.look(t)
	to := b.routed.only(t).To
	records := recordsOf(20)
	require.NoError(t, to.Deliver(t.Context(), records))
	path := filepath.Join(b.Folder, "audit.jsonl")
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(written)), "\n")
	require.Len(t, lines, 20)
	for i, line := range lines {
		var read fleetflowv1alpha1.AuditRecordSpec
		require.NoError(t, json.Unmarshal([]byte(line), &read))
		read.Time.Time = read.Time.UTC()
		assert.Equal(t, records[i].Spec, read)
	}
	for range 100 { // 2 MiB and more
		for i := range records {
			records[i].Spec.Message = strings.Repeat("x", 1024)
		}
		require.NoError(t, to.Deliver(t.Context(), records))
	}
	files, err := os.ReadDir(b.Folder)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(files), 2, "another is begun")
	require.NoError(t, b.hub.Delete(t.Context(), b.sink(t)))
	b.look(t)
}

// What an agent has written a part of, before it was ended or the disk was full, spoils no other line.
func TestALineThatIsTornSpoilsNoOther(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "audit.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"id":"whole"}`+"\n"+`{"id":"to`), 0o600))
	lines := func() []string {
		written, err := os.ReadFile(path)
		require.NoError(t, err)
		return strings.Split(strings.TrimSuffix(string(written), "\n"), "\n")
	}
	to := newFile(&fleetflowv1alpha1.AuditSinkFile{Name: "audit.jsonl", MaxSizeMiB: 1, Keep: 2}, folder, nil)
	t.Cleanup(func() { _ = to.Close() })
	require.NoError(t, to.Deliver(t.Context(), recordsOf(2)))
	got := lines()
	require.Len(t, got, 4)
	assert.Equal(t, `{"id":"to`, got[1])
	assert.True(t, json.Valid([]byte(got[2])))

	out := to.out
	to.out = tearing{path}
	require.Error(t, to.Deliver(t.Context(), recordsOf(1)))
	to.out = out
	require.NoError(t, to.Deliver(t.Context(), recordsOf(1)))
	got = lines()
	require.Len(t, got, 6)
	assert.Equal(t, `{"`, got[4])
	assert.True(t, json.Valid([]byte(got[5])))
	require.NoError(t, to.Deliver(t.Context(), recordsOf(1)))
	assert.Len(t, lines(), 7, "no line is empty")
}

// tearing writes a part of a line to a file.
type tearing struct{ path string }

func (w tearing) Write(line []byte) (int, error) {
	of, err := os.OpenFile(w.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return 0, err
	}
	defer of.Close()
	n, _ := of.Write(line[:2])
	return n, errors.New("no space left on device")
}

func TestAFileHasOneSink(t *testing.T) {
	fileNamed := func(name, file string, age time.Duration) *fleetflowv1alpha1.AuditSink {
		sink := sinkOf(fleetflowv1alpha1.AuditSinkSpec{Type: "File", File: &fleetflowv1alpha1.AuditSinkFile{Name: file, MaxSizeMiB: 1, Keep: 2}})
		sink.Name = name
		sink.CreationTimestamp = metav1.NewTime(start.Add(-age))
		return sink
	}
	for _, test := range []struct {
		other, file, others string
		age                 time.Duration
		reason              string
	}{
		{"older", "audit.jsonl", "audit.jsonl", time.Hour, "FileTaken"},
		{"equal", "audit.jsonl", "audit.jsonl", 0, "FileTaken"},
		{"the-younger", "audit.jsonl", "audit.jsonl", 0, "SinkReady"},
		{"younger", "audit.jsonl", "audit.jsonl", -time.Hour, "SinkReady"},
		{"older", "audit.jsonl", "other.jsonl", time.Hour, "SinkReady"},
		{"older", "-", "-", time.Hour, "SinkReady"},
	} {
		b := newBench(t, fileNamed("siem", test.file, 0), fileNamed(test.other, test.others, test.age))
		b.look(t)
		assert.Equal(t, test.reason, b.ready(t).Reason, test.other)
		if test.reason == "FileTaken" {
			require.ErrorContains(t, b.routed.only(t).To.Deliver(t.Context(), recordsOf(1)), "AuditSink "+test.other+" has the file audit.jsonl")
			require.NoError(t, b.hub.Delete(t.Context(), fileNamed(test.other, "", 0)))
			b.clock.Step(writeEvery)
			b.look(t)
			assert.Equal(t, "SinkReady", b.ready(t).Reason)
		}
	}
}

func TestAFileThatCannotBeWritten(t *testing.T) {
	file := &fleetflowv1alpha1.AuditSinkFile{Name: "audit.jsonl", MaxSizeMiB: 1, Keep: 2}
	b := newBench(t, sinkOf(fleetflowv1alpha1.AuditSinkSpec{Type: "File", File: file}))
	require.NoError(t, os.WriteFile(filepath.Join(b.Folder, "occupied"), nil, 0o600))
	b.Folder = filepath.Join(b.Folder, "occupied")
	b.look(t)
	require.Error(t, b.routed.only(t).To.Deliver(t.Context(), recordsOf(1)))

	b = newBench(t, sinkOf(fleetflowv1alpha1.AuditSinkSpec{Type: "File", File: file}))
	b.Folder = ""
	b.look(t)
	assert.Equal(t, "NoFolder", b.ready(t).Reason)
}

func TestStandardOutputHasALineForEachRecord(t *testing.T) {
	b := newBench(t, sinkOf(fleetflowv1alpha1.AuditSinkSpec{Type: "File", File: &fleetflowv1alpha1.AuditSinkFile{Name: "-"}}))
	b.look(t)
	require.NoError(t, b.routed.only(t).To.Deliver(t.Context(), recordsOf(3)))
	assert.Equal(t, 3, strings.Count(b.stdout.String(), "\n"))
}

func otlpAt(url string, protocol fleetflowv1alpha1.AuditSinkProtocol) *fleetflowv1alpha1.AuditSink {
	return sinkOf(fleetflowv1alpha1.AuditSinkSpec{Type: "OTLP", OTLP: &fleetflowv1alpha1.AuditSinkOTLP{
		Protocol:        protocol,
		AuditSinkServer: fleetflowv1alpha1.AuditSinkServer{URL: url, Auth: &fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthBearer, Secret: in("token")}},
	}})
}

// checkLogs asserts that logs have what the records say.
func checkLogs(t *testing.T, got *collectorlogs.ExportLogsServiceRequest, n int) {
	t.Helper()
	logs := got.GetResourceLogs()[0].GetScopeLogs()[0].GetLogRecords()
	require.Len(t, logs, n)
	first := logs[0]
	assert.Equal(t, "io.fleetflow.approval.given", first.GetEventName())
	assert.Equal(t, "INFO", first.GetSeverityText())
	assert.Equal(t, uint64(start.UnixNano()), first.GetTimeUnixNano())
	assert.Equal(t, "jane has approved", first.GetBody().GetStringValue())
	attributes := map[string]string{}
	for _, a := range first.GetAttributes() {
		attributes[a.GetKey()] = a.GetValue().String()
	}
	assert.Contains(t, attributes["log.record.uid"], recordsOf(1)[0].Spec.ID)
	assert.Contains(t, attributes["fleetflow.actor.username"], "jane")
	assert.Contains(t, attributes["fleetflow.actor.verified"], "true")
	assert.Contains(t, attributes["fleetflow.data.approvalRequest"], "web-2-canary")
	assert.NotContains(t, attributes, "fleetflow.subject.namespace", "what is empty is left out")
}

func TestHowGraveEachTypeIs(t *testing.T) {
	graver := map[fleetflowv1alpha1.AuditRecordType]string{
		"run.failed": "ERROR", "stage.failed": "ERROR", "analysis.failed": "ERROR", "analysis.error": "ERROR", "placement.failed": "ERROR",
		"run.refused": "WARN", "run.held": "WARN", "run.stuck": "WARN", "run.abandoned": "WARN", "run.stopped": "WARN", "cluster.skipped": "WARN",
		"approval.rejected": "WARN", "approval.voided": "WARN", "approval.expired": "WARN", "analysis.inconclusive": "WARN", "eviction.refused": "WARN",
		"member.lost": "WARN", "member.forceRemoved": "WARN", "config.recordsDropped": "WARN",
	}
	for _, kind := range fleetflowv1alpha1.RecordTypes() {
		want := graver[kind]
		if want == "" {
			want = "INFO"
		}
		assert.Equal(t, want, logOf(&fleetflowv1alpha1.AuditRecordSpec{Type: kind}, 0).GetSeverityText(), kind)
	}
}

func TestACollectorGetsLogsByHTTP(t *testing.T) {
	to := newReceiver(t)
	b := newBench(t, otlpAt(to.URL, "HTTP"), secretFor(to.URL, map[string]string{"token": planted}))
	b.look(t)
	path := ""
	to.answer = func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		body, _ := proto.Marshal(&collectorlogs.ExportLogsServiceResponse{})
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(body)
	}
	deliver := b.routed.only(t).To.Deliver
	require.NoError(t, deliver(t.Context(), recordsOf(3)))
	assert.Equal(t, "/v1/logs", path)
	assert.Equal(t, "application/x-protobuf", to.headers[0].Get("Content-Type"))
	assert.Equal(t, "Bearer "+planted, to.headers[0].Get("Authorization"))
	got := &collectorlogs.ExportLogsServiceRequest{}
	require.NoError(t, proto.Unmarshal(to.bodies[0], got))
	checkLogs(t, got, 3)

	to.answer = func(w http.ResponseWriter, _ *http.Request) {
		body, _ := proto.Marshal(&collectorlogs.ExportLogsServiceResponse{PartialSuccess: &collectorlogs.ExportLogsPartialSuccess{RejectedLogRecords: 1, ErrorMessage: "too long " + planted}})
		_, _ = w.Write(body)
	}
	err := deliver(t.Context(), recordsOf(3))
	require.ErrorContains(t, err, "the collector rejects 1 of the logs: too long [redacted]")
	to.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	asked, is := errors.AsType[*delivery.RetryError](deliver(t.Context(), recordsOf(3)))
	require.True(t, is)
	assert.Equal(t, 30*time.Second, asked.After)
}

// logsServer takes logs by gRPC.
type logsServer struct {
	collectorlogs.UnimplementedLogsServiceServer
	got    []*collectorlogs.ExportLogsServiceRequest
	tokens []string
	answer error
}

func (s *logsServer) Export(ctx context.Context, request *collectorlogs.ExportLogsServiceRequest) (*collectorlogs.ExportLogsServiceResponse, error) {
	sent, _ := metadata.FromIncomingContext(ctx)
	s.tokens = append(s.tokens, sent.Get("authorization")...)
	if s.answer != nil {
		return nil, s.answer
	}
	s.got = append(s.got, request)
	return &collectorlogs.ExportLogsServiceResponse{}, nil
}

func serveLogs(t *testing.T, options ...grpc.ServerOption) (of *logsServer, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(options...)
	of = &logsServer{}
	collectorlogs.RegisterLogsServiceServer(server, of)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return of, listener.Addr().String()
}

func TestACollectorGetsLogsByGRPC(t *testing.T) {
	of, address := serveLogs(t)
	at := "http://" + address
	b := newBench(t, otlpAt(at, "GRPC"), secretFor(at, map[string]string{"token": planted}))
	b.look(t)
	deliver := b.routed.only(t).To.Deliver
	require.NoError(t, deliver(t.Context(), recordsOf(2)))
	checkLogs(t, of.got[0], 2)
	assert.Equal(t, []string{"Bearer " + planted}, of.tokens)
	for code, want := range map[codes.Code]string{codes.Unavailable: "again", codes.InvalidArgument: "content", codes.Unauthenticated: "refused"} {
		of.answer = status.Error(code, "I know "+planted)
		err := deliver(t.Context(), recordsOf(2))
		require.ErrorContains(t, err, "the collector answers "+code.String()+": I know [redacted]")
		got := "again"
		if refused, is := errors.AsType[*delivery.RefusedError](err); is {
			got = map[bool]string{true: "content", false: "refused"}[refused.Content]
		}
		assert.Equal(t, want, got)
	}
	for _, test := range []struct {
		code codes.Code
		wait time.Duration
		asks bool
	}{{codes.Unavailable, time.Minute, true}, {codes.ResourceExhausted, time.Minute, true}, {codes.Unavailable, 0, false}, {codes.InvalidArgument, time.Minute, false}} {
		busy, err := status.New(test.code, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(test.wait)})
		require.NoError(t, err)
		of.answer = busy.Err()
		asked, is := errors.AsType[*delivery.RetryError](deliver(t.Context(), recordsOf(2)))
		assert.Equal(t, test.asks, is, test.code)
		if is {
			assert.Equal(t, test.wait, asked.After)
		}
	}
	b.Outbound.Guard = outbound.Guard{}
	require.ErrorContains(t, deliver(t.Context(), recordsOf(2)), " is refused: ")
}

func TestACollectorByGRPCIsKnownByItsCertificate(t *testing.T) {
	known := httptest.NewTLSServer(nil)
	t.Cleanup(known.Close)
	of, address := serveLogs(t, grpc.Creds(credentials.NewServerTLSFromCert(&known.TLS.Certificates[0])))
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: known.Certificate().Raw}))
	at := "https://" + address
	sink := otlpAt(at, "GRPC")
	sink.Spec.OTLP.TLS = &fleetflowv1alpha1.MetricSourceTLS{CASecret: in("ca.crt")}
	b := newBench(t, sink, secretFor(at, map[string]string{"token": planted, "ca.crt": ca}))
	b.look(t)
	require.NoError(t, b.routed.only(t).To.Deliver(t.Context(), recordsOf(1)))
	assert.Len(t, of.got, 1)
}

// A sink of which the hub does not tell whether it can be used has a queue all the same: what waits for it is not complete.
func TestASinkThatCannotBeCheckedHasAQueue(t *testing.T) {
	to := newReceiver(t)
	b := newBench(t, webhookAt(to.URL, &fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthBearer, Secret: in("token")}),
		secretFor(to.URL, map[string]string{"token": planted}))
	away := true
	reads := 0
	b.Outbound.Live = interceptor.NewClient(b.hub, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			reads++
			if away {
				return errors.New("the hub is away")
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	existing, err := b.Existing(t.Context())
	require.NoError(t, err)
	require.Len(t, existing, 1)
	assert.Equal(t, keyOf("siem"), existing[0].Key)
	_, err = b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "siem"}})
	require.ErrorContains(t, err, "the hub is away")
	refused, is := errors.AsType[*delivery.RefusedError](b.routed.only(t).To.Deliver(t.Context(), recordsOf(1)))
	require.True(t, is)
	assert.Contains(t, refused.Why, "the hub is away")
	assert.Equal(t, "NotChecked", b.ready(t).Reason)

	away = false
	b.clock.Step(writeEvery)
	b.look(t)
	assert.Equal(t, "SinkReady", b.ready(t).Reason)
	require.NoError(t, b.routed.only(t).To.Deliver(t.Context(), recordsOf(1)))
	puts := b.routed.puts
	reads = 0
	for range 10 {
		b.clock.Step(time.Second)
		b.look(t)
	}
	assert.Zero(t, reads, "what was delivered changes nothing in how")
	away = true
	b.clock.Step(lookAgain)
	_, err = b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "siem"}})
	require.ErrorContains(t, err, "the hub is away")
	assert.Equal(t, puts, b.routed.puts, "a sink that could be used is used")
}

func TestASinkThatIsNotServedSaysSo(t *testing.T) {
	ready := readyOf(nil, delivery.Report{Unserved: true, Pending: 3})
	assert.Equal(t, metav1.ConditionFalse, ready.Status)
	assert.Equal(t, fleetflowv1alpha1.ReasonTooManyDestinations, ready.Reason)
	assert.Equal(t, "Records go to the 64 oldest destinations, each a sink or a rule with one of its channels, and there are more: what is for it waits", ready.Message)
}
