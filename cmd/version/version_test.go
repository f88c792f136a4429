package version

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"
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

func TestALabelCanHaveEveryVersion(t *testing.T) {
	for of, want := range map[string]string{
		"v0.2.0-rc.1":                            "v0.2.0-rc.1",
		"v0.0.0-20261125-556decd00000+dirty":     "v0.0.0-20261125-556decd00000-dirty",
		"v1.2.3+" + strings.Repeat("a", 70):      "v1.2.3-" + strings.Repeat("a", 56),
		"v1.2.3" + strings.Repeat("+", 70) + "a": "v1.2.3",
	} {
		assert.Equal(t, want, labelValue(of))
		assert.Empty(t, validation.IsValidLabelValue(labelValue(of)))
	}
}
