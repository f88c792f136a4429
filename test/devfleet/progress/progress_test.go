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

func TestAPlainDisplayRemindsOnceForAStepAndItsParts(t *testing.T) {
	var out bytes.Buffer
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	display := newPlain(&out, fake)
	left := "about 2 minutes left"
	whole := display.Step("building")
	whole.Remark(func() string { return left })
	etcd := whole.Part("building etcd")
	kwok := whole.Part("building kwok")
	out.Reset()

	fake.SetTime(time.Unix(31, 0))
	display.refresh()
	display.refresh()
	assert.Equal(t, "  … building: still going, 31s (about 2 minutes left)\n", out.String(), "the parts do not remind")
	out.Reset()

	left = "about a minute left"
	fake.SetTime(time.Unix(40, 0))
	assert.NoError(t, etcd.End(nil))
	display.refresh()
	assert.Equal(t, "  ✓ building etcd 40s\n  … building: still going, 40s (about a minute left)\n", out.String(), "the remark is asked for anew")
	out.Reset()

	fake.SetTime(time.Unix(69, 0))
	display.refresh()
	assert.Empty(t, out.String(), "the line at the end of a part counts as a reminder")
	kwok.Drop()
	assert.Empty(t, out.String(), "what is dropped ends without a line")
	assert.NoError(t, whole.End(nil))
	assert.Nil(t, display.stop, "nothing is shown any more")
}
