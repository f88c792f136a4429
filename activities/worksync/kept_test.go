package worksync

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// contentOf is the content of a snapshot of as many bytes, in two parts.
func contentOf(bytes int) *workmodel.Content {
	var parts []placementv1beta1.ResourceSnapshotObject
	for _, size := range []int{bytes / 2, bytes - bytes/2} {
		part := &placementv1beta1.ClusterResourceSnapshot{}
		part.Spec.SelectedResources = []placementv1beta1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: make([]byte, size)}}}
		parts = append(parts, part)
	}
	return workmodel.NewContent(envelope.Rules{}, parts)
}

func TestSnapshotsAreKeptAsFarAsThereIsRoom(t *testing.T) {
	k := newKept(3, 100)
	there := func(uids ...types.UID) {
		t.Helper()
		var found []types.UID
		for _, uid := range []types.UID{"a", "b", "c", "d", "large"} {
			if _, ok := k.all[uid]; ok {
				found = append(found, uid)
			}
		}
		assert.Equal(t, uids, found)
	}
	a := contentOf(40)
	k.addContent("a", a)
	k.addContent("b", contentOf(40))
	got, ok := k.contentOf("a")
	assert.True(t, ok)
	assert.Same(t, a, got)
	k.addContent("c", contentOf(40))
	there("a", "c") // b was asked for longest ago, and three are too large together
	k.addContent("d", contentOf(1))
	k.addContent("b", contentOf(1))
	there("b", "c", "d") // no more than three
	k.addContent("large", contentOf(1000))
	there("large") // what is in use now is kept, however large
	k.addContent("large", contentOf(1000))
	k.addContent("a", contentOf(100))
	there("a")
	_, ok = k.contentOf("b")
	assert.False(t, ok)
}
