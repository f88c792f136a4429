package progress

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestElapsedReadsLikeAWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		elapsed time.Duration
		want    string
	}{
		"short times keep a decimal":         {420 * time.Millisecond, "0.4s"},
		"from ten seconds on whole seconds":  {12*time.Second + 300*time.Millisecond, "12s"},
		"minutes are split off":              {192 * time.Second, "3m12s"},
		"a full minute still names its zero": {time.Minute, "1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, Elapsed(tc.elapsed))
		})
	}
}

func TestShortenKeepsALineWithinTheTerminal(t *testing.T) {
	assert.Equal(t, "abc", truncateLine("abc", 10), "a short line is left alone")
	assert.Equal(t, "abcd…", truncateLine("abcdefgh", 6), "a long line is cut before the last column")
	assert.Equal(t, "abcdefgh", truncateLine("abcdefgh", 0), "an unknown width cuts nothing")
}

func TestPlainDisplayPrintsStartAndEndOfEachStep(t *testing.T) {
	var out bytes.Buffer
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	display := newPlain(&out, fake)

	build := display.Step("building %s", "etcd")
	fake.SetTime(time.Unix(7, 0))
	assert.NoError(t, build.End(nil))
	broken := errors.New("broken")
	assert.ErrorIs(t, display.Step("starting").End(broken), broken)

	assert.Equal(t, "  … building etcd\n  ✓ building etcd 7.0s\n  … starting\n  ✗ starting failed after 0.0s\n", out.String())
}
