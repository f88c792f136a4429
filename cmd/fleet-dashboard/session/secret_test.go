package session

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// sealersOf are replicas of a dashboard with the keys of one Secret.
func sealersOf(c client.Client, number int) []*Sealer {
	var all []*Sealer
	for range number {
		all = append(all, &Sealer{Secret: &Secret{Client: c, Namespace: "fleet-system", Name: "keys"}, Clock: testingclock.NewFakeClock(time.Unix(1_800_000_000, 0))})
	}
	return all
}

func TestReplicasThatStartTogetherAgreeOnAKey(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "keys"}}
	replicas := sealersOf(fake.NewClientBuilder().WithObjects(secret).Build(), 4)
	errs := make([]error, len(replicas))
	var started sync.WaitGroup
	for i, replica := range replicas {
		started.Go(func() { errs[i] = replica.Check() })
	}
	started.Wait()
	for i, replica := range replicas {
		require.NoError(t, errs[i])
		sealed, err := replica.Seal("session", Identity{User: "jane"})
		require.NoError(t, err)
		for _, other := range replicas {
			user := Identity{}
			require.NoError(t, other.Unseal("session", sealed, &user))
			assert.Equal(t, "jane", user.User)
		}
	}
}

func TestAKeyThatTheSecretHasIsKept(t *testing.T) {
	key := strings.Repeat("k", minKey)
	for sentence, test := range map[string]struct{ key, want string }{
		"a good one":   {key, ""},
		"a short one":  {"short", "key in Secret fleet-system/keys, has 5 characters; it needs 32 or more"},
		"without any":  {"", ""},
		"of no Secret": {"none", "there is no Secret fleet-system/keys"},
	} {
		t.Run(sentence, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "keys"}, Data: map[string][]byte{"key": []byte(test.key), "previous": []byte(key)}}
			if test.key != "none" {
				builder.WithObjects(secret)
			}
			c := builder.Build()
			err := sealersOf(c, 1)[0].Check()
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
				return
			}
			require.NoError(t, err)
			stored := &corev1.Secret{}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(secret), stored))
			assert.GreaterOrEqual(t, len(stored.Data["key"]), minKey)
			assert.Equal(t, key, string(stored.Data["previous"]), "other entries are left")
			if test.key != "" {
				assert.Equal(t, test.key, string(stored.Data["key"]))
			}
		})
	}
}
