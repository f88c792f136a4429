package version

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheVersionIsThatOfTheReleaseOrElseThatOfTheCommit(t *testing.T) {
	of := func(v string) *debug.BuildInfo { return &debug.BuildInfo{Main: debug.Module{Version: v}} }
	for sentence, test := range map[string]struct {
		stamped string
		info    *debug.BuildInfo
		want    string
	}{
		"a release":                         {"v0.1.0", of("v0.0.0-20261121232530-510936300000"), "v0.1.0"},
		"a build from a checkout":           {"", of("v0.0.0-20261121232530-510936300000"), "v0.0.0-20261121232530-510936300000"},
		"a build that knows no commit":      {"", of("(devel)"), "devel"},
		"a build of which nothing is known": {"", nil, "devel"},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.want, numberOf(test.stamped, test.info))
		})
	}
}

func TestAProgramNamesItsVersionAndItsPlatform(t *testing.T) {
	number = "v1.2.3"
	t.Cleanup(func() { number = "" })
	assert.Equal(t, "hub-agent v1.2.3 ("+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")", Of("hub-agent"))
}

func TestImagesThereAreOfReleasesOnly(t *testing.T) {
	t.Cleanup(func() { number = "" })
	for stamped, is := range map[string]bool{"v0.2.0": true, "v0.2.0-rc.1": true, "": false, "139e5d1": false, "v0.2.0-14-g139e5d1": false, "v0.2.0-dirty": false} {
		number = stamped
		assert.Equal(t, is, IsRelease(), stamped)
	}
}
