package as

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestNamesOfKubernetesAreNeverImpersonated(t *testing.T) {
	own := &rest.Config{Host: "https://hub.example", BearerToken: "own", Impersonate: rest.ImpersonationConfig{UserName: "x"}}
	for name, who := range map[string]struct {
		user   string
		groups []string
	}{
		"masters":                {"jane", []string{"team", "system:masters"}},
		"a service account":      {"system:serviceaccount:fleet-system:hub-agent", nil},
		"the anonymous user":     {"system:anonymous", nil},
		"kubeadm's":              {"jane", []string{"kubeadm:cluster-admins"}},
		"a user without a name":  {"", nil},
		"a name of spaces":       {" ", nil},
		"a group without a name": {"jane", []string{""}},
	} {
		_, err := User(own, who.user, who.groups)
		require.ErrorIs(t, err, ErrReserved, name)
	}
	acting, err := User(own, "https://issuer#jane", []string{"team"})
	require.NoError(t, err)
	assert.Equal(t, rest.ImpersonationConfig{
		UserName: "https://issuer#jane", Groups: []string{"team"}, Extra: map[string][]string{"fleetflow.io/channel": {"Dashboard"}},
	}, acting.Impersonate)
	assert.Equal(t, "x", own.Impersonate.UserName, "the account's own configuration stays")
	assert.Equal(t, rest.ImpersonationConfig{}, Bearer(own, "theirs").Impersonate)
	assert.Equal(t, "theirs", Bearer(own, "theirs").BearerToken)
}

func TestNamesThatAHeaderChangesAreRefused(t *testing.T) {
	for _, name := range []string{" alf", "alf ", "\talf", "alf\u00a0", "a\nb", "a\r\nImpersonate-Group: x", "a\x00", "al\u202ef", "alf\u200b", " system:masters"} {
		assert.ErrorIs(t, Check(name, nil), ErrReserved, "user %q", name)
		assert.ErrorIs(t, Check("alf", []string{"team", name}), ErrReserved, "group %q", name)
	}
	assert.NoError(t, Check("Älf Müller", []string{"team a"}))
}
