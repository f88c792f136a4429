package hubtoken

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tokenOf returns a token such as an API server makes, with a false signature.
func tokenOf(subject string, issued, expires time.Time) string {
	payload := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, subject, issued.Unix(), expires.Unix())
	return "head." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".signature"
}

// day is a token of a member that holds for a day.
func day(from time.Time) string {
	return tokenOf("system:serviceaccount:connect-to-fleet:one-hub-cluster-access", from, from.Add(24*time.Hour))
}

// bench is a renewer with a file, a clock and a hub that can be set.
type bench struct {
	*Renewer
	t      *testing.T
	clock  *clocktesting.FakeClock
	file   File
	asked  []string
	answer func() (string, error)
}

func newBench(t *testing.T, token string) *bench {
	b := &bench{t: t, clock: clocktesting.NewFakeClock(began), file: File(filepath.Join(t.TempDir(), "token"))}
	b.put(token)
	b.answer = func() (string, error) { return day(b.clock.Now()), nil }
	b.Renewer = New(b.file, func(_ context.Context, namespace, account string, lifetime time.Duration) (string, error) {
		b.asked = append(b.asked, fmt.Sprintf("%s/%s %s", namespace, account, lifetime))
		return b.answer()
	}, b.clock, logr.Discard())
	b.share = 0.5
	return b
}

func (b *bench) put(token string) {
	require.NoError(b.t, os.WriteFile(string(b.file), []byte(token), 0o600))
}

func (b *bench) token() string {
	token, err := b.file.Load(b.t.Context())
	require.NoError(b.t, err)
	return token
}

// after lets time pass and has the renewer look.
func (b *bench) after(d time.Duration) time.Duration {
	b.clock.Step(d)
	return b.renewIfDue(b.t.Context())
}

func TestATokenIsRenewedHalfWayThroughItsLife(t *testing.T) {
	b := newBench(t, day(began))
	assert.Equal(t, lookEvery, b.after(0))
	assert.Equal(t, 10*time.Second, b.after(12*time.Hour-10*time.Second))
	assert.Empty(t, b.asked)
	b.after(10 * time.Second)
	assert.Equal(t, []string{"connect-to-fleet/one-hub-cluster-access 24h0m0s"}, b.asked)
	assert.Equal(t, day(began.Add(12*time.Hour)), b.token())
	assert.Empty(t, b.Findings())
	b.after(11 * time.Hour)
	assert.Len(t, b.asked, 1)
	b.after(time.Hour)
	assert.Len(t, b.asked, 2)
}

func TestATokenIsRenewedOnceWhenTheHubAsks(t *testing.T) {
	b := newBench(t, day(began))
	pending, obstacle := b.RenewBefore(began.Add(time.Hour))
	assert.True(t, pending, "the token was not looked at yet")
	assert.Empty(t, obstacle)
	b.after(0)
	assert.Equal(t, began.Add(24*time.Hour), b.Ends().UTC())
	assert.Len(t, b.asked, 1, "the hub's clock is an hour behind that of who asks: once is enough")
	pending, _ = b.RenewBefore(began.Add(time.Hour))
	assert.False(t, pending)
	b.after(2 * time.Hour)
	assert.Len(t, b.asked, 1)

	pending, _ = b.RenewBefore(began.Add(2 * time.Hour))
	assert.True(t, pending)
	b.after(0)
	assert.Len(t, b.asked, 2)
	assert.Equal(t, began.Add(26*time.Hour), b.Ends().UTC())
	pending, _ = b.RenewBefore(began.Add(2 * time.Hour))
	assert.False(t, pending)

	b.put("0123456789abcdef")
	b.after(0)
	pending, obstacle = b.RenewBefore(began.Add(3 * time.Hour))
	assert.False(t, pending)
	assert.Contains(t, obstacle, "Join the cluster again")
	assert.Zero(t, b.Ends())
}

func TestAMemberWhoseClockIsWrongDoesNotRenewAllTheTime(t *testing.T) {
	b := newBench(t, day(began.Add(-24*time.Hour)))
	b.answer = func() (string, error) { return day(b.clock.Now().Add(-24 * time.Hour)), nil } // the hub's clock is a day behind
	b.after(0)
	b.after(11 * time.Hour)
	assert.Len(t, b.asked, 1)
	b.after(time.Hour)
	assert.Len(t, b.asked, 2)
}

func TestWhatIsNotRenewableIsLeftAlone(t *testing.T) {
	for sentence, token := range map[string]string{
		"an opaque token":           "0123456789abcdef",
		"no token":                  "",
		"three parts of nothing":    "a.b.c",
		"no JSON":                   "a." + base64.RawURLEncoding.EncodeToString([]byte("x")) + ".c",
		"one that does not end":     "a." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:a:b"}`)) + ".c",
		"one that is not a service": tokenOf("jane", began.Add(-time.Hour), began.Add(time.Minute)),
		"one that ends as it began": tokenOf("system:serviceaccount:a:b", began, began),
		"an account without a name": tokenOf("system:serviceaccount:a", began.Add(-time.Hour), began.Add(time.Minute)),
	} {
		t.Run(sentence, func(t *testing.T) {
			b := newBench(t, token)
			assert.Equal(t, lookEvery, b.after(0))
			assert.Empty(t, b.asked)
			assert.Equal(t, token, b.token())
			assert.Empty(t, b.Findings())
		})
	}
}

func TestAFailureIsToldUntilItIsOver(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "one-hub-cluster-access", errors.New("no right"))
	for sentence, test := range map[string]struct {
		cause        error
		reason, want string
	}{
		"the hub refuses":      {forbidden, clusterv1beta1.ReasonHubTokenRenewalRefused, "join the cluster again"},
		"the hub is not there": {errors.New("connection refused"), clusterv1beta1.ReasonHubTokenNotRenewed, "it is tried again"},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := newBench(t, day(began))
			renewed := b.answer
			b.answer = func() (string, error) { return "", test.cause }
			b.after(0)
			changes := 0
			b.Changed = func() { changes++ }
			assert.Equal(t, firstRetry, b.after(12*time.Hour))
			require.Len(t, b.Findings(), 1)
			finding := b.Findings()[0]
			assert.Equal(t, clusterv1beta1.ConditionTypeHubTokenRenewed, finding.Type)
			assert.Equal(t, metav1.ConditionFalse, finding.Status)
			assert.Equal(t, test.reason, finding.Reason)
			assert.Contains(t, finding.Message, "ends at 2026-01-02T00:00:00Z and is not renewed: "+test.cause.Error())
			assert.Contains(t, finding.Message, test.want)
			assert.Equal(t, day(began), b.token())
			for range 20 {
				assert.LessOrEqual(t, b.after(0), lastRetry)
			}
			assert.Equal(t, 1, changes, "the same is told once")
			b.answer = renewed
			b.after(0)
			assert.Empty(t, b.Findings())
			assert.Equal(t, 3, changes, "that there is another token, and that all is well")
		})
	}
}

func TestATokenThatIsPutThereMeanwhileStays(t *testing.T) {
	b := newBench(t, day(began))
	b.answer = func() (string, error) {
		b.put("of another join")
		return day(b.clock.Now()), nil
	}
	b.after(12 * time.Hour)
	assert.Equal(t, "of another join", b.token())
	require.Len(t, b.Findings(), 1)
	assert.Contains(t, b.Findings()[0].Message, "another token was put there meanwhile")
	b.after(firstRetry)
	assert.Empty(t, b.Findings(), "it is nothing to be told: the other one counts")
}

func TestTheSecretIsWrittenUnlessItHasChanged(t *testing.T) {
	secret := func(token string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"},
			Data:       map[string][]byte{SecretKey: []byte(token), "other": []byte("stays")},
		}
	}
	member := fake.NewClientset(secret("one\n"))
	store := &Secret{Secrets: member.CoreV1().Secrets("default"), Name: "s"}
	require.NoError(t, store.Replace(t.Context(), "one", "two"))
	assert.Equal(t, "two", mustLoad(t, store))
	require.ErrorIs(t, store.Replace(t.Context(), "one", "three"), errChanged)
	assert.Equal(t, "two", mustLoad(t, store))
	got, err := store.Secrets.Get(t.Context(), "s", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "stays", string(got.Data["other"]))
	for sentence, test := range map[string]struct {
		client *fake.Clientset
		want   string
	}{
		"it does not exist": {fake.NewClientset(), "not found"},
		"it has no token":   {fake.NewClientset(secret(" ")), "default/s has no entry"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := (&Secret{Secrets: test.client.CoreV1().Secrets("default"), Name: "s"}).Load(t.Context())
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func mustLoad(t *testing.T, store Store) string {
	t.Helper()
	token, err := store.Load(t.Context())
	require.NoError(t, err)
	return token
}

func TestAFileThatCannotBeWrittenSaysSo(t *testing.T) {
	b := newBench(t, day(began))
	// The kernel makes no file beside this one, for root neither.
	open, err := os.Open(string(b.file))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, open.Close()) })
	b.Renewer.store = File(fmt.Sprintf("/proc/self/fd/%d", open.Fd()))
	b.after(12 * time.Hour)
	require.Len(t, b.Findings(), 1)
	assert.Contains(t, b.Findings()[0].Message, "writing the renewed token beside /proc/self/fd/")
	assert.Equal(t, day(began), b.token(), "the token that is there stays")
}
