package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"
)

func TestWhatIsSealedIsReadOnlyHereAndForItsPurpose(t *testing.T) {
	folder := t.TempDir()
	clock := testingclock.NewFakeClock(time.Unix(1_800_000_000, 0))
	write := func(name, key string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(key), 0o600))
	}
	sealer := &Sealer{Folder: folder, Clock: clock}
	require.ErrorContains(t, sealer.Check(), "reading the key of sessions")
	write("key", "short")
	require.ErrorContains(t, sealer.Check(), "has 5 characters; it needs 32 or more")
	first := strings.Repeat("a", 40) + "\n"
	second := strings.Repeat("b", 40)
	write("key", first)

	sealed, err := sealer.Seal("session", Identity{User: "jane", Token: "secret"})
	require.NoError(t, err)
	other, err := sealer.Seal("session", Identity{User: "jane", Token: "secret"})
	require.NoError(t, err)
	assert.NotEqual(t, sealed, other, "no two are alike")
	assert.NotContains(t, sealed, "jane")
	user := Identity{}
	require.NoError(t, sealer.Unseal("session", sealed, &user))
	assert.Equal(t, Identity{User: "jane", Token: "secret"}, user)
	require.ErrorIs(t, sealer.Unseal("login", sealed, &user), ErrNotSealed, "a session is no login")
	for at := range len(sealed) {
		changed := []byte(sealed)
		changed[at] ^= 1
		require.ErrorIs(t, sealer.Unseal("session", string(changed), &user), ErrNotSealed, "byte %d was changed", at)
	}
	require.ErrorIs(t, sealer.Unseal("session", "", &user), ErrNotSealed)

	write("previous", first)
	write("key", second)
	clock.Step(keysLast)
	require.NoError(t, sealer.Unseal("session", sealed, &user), "the key before still opens")
	renewed, err := sealer.Seal("session", user)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(folder, "previous")))
	clock.Step(keysLast)
	require.ErrorIs(t, sealer.Unseal("session", sealed, &user), ErrNotSealed, "the key before is gone")
	require.NoError(t, sealer.Unseal("session", renewed, &user))
	require.NoError(t, os.Remove(filepath.Join(folder, "key")))
	clock.Step(keysLast)
	require.NoError(t, sealer.Unseal("session", renewed, &user), "a key that cannot be read now does not end all sessions")
}
