package placement

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestTheNoteOfAnEventIsAsLongAsTheAPITakesIt(t *testing.T) {
	f := failure{cluster: "member1", FailedResourcePlacement: placementv1beta1.FailedResourcePlacement{
		ResourceIdentifier: placementv1beta1.ResourceIdentifier{Kind: "ConfigMap", Name: "config"},
	}}
	f.Condition.Message = "refused"
	assert.Equal(t, "Cluster member1: ConfigMap config: refused", f.note())
	f.Condition.Message = strings.Repeat("ä", 4000)
	assert.LessOrEqual(t, len(f.note()), 1024)
	assert.True(t, utf8.ValidString(f.note()))
	assert.True(t, strings.HasSuffix(f.note(), "ä…"))
}
