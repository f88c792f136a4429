package safetycatch_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/safetycatch"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func namespaceNamed(name string) snapshot.Identity {
	return snapshot.Identity{GroupKind: snapshot.NamespaceKind, Name: name}
}

// configMaps are as many objects of a namespace.
func configMaps(namespace string, from, to int) []snapshot.Identity {
	var all []snapshot.Identity
	for i := from; i < to; i++ {
		all = append(all, snapshot.Identity{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: namespace, Name: fmt.Sprintf("c%d", i)})
	}
	return all
}

func join(parts ...[]snapshot.Identity) []snapshot.Identity {
	var all []snapshot.Identity
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

func TestWhichLossesOfASelectionAreHeld(t *testing.T) {
	app := []snapshot.Identity{namespaceNamed("app")}
	for sentence, test := range map[string]struct {
		before, now []snapshot.Identity
		ended       string
		want        string
		lost        int
	}{
		"nothing is lost":                                   {before: join(app, configMaps("app", 0, 3)), now: join(app, configMaps("app", 0, 4))},
		"there was nothing":                                 {now: app},
		"one of many goes":                                  {before: join(app, configMaps("app", 0, 20)), now: join(app, configMaps("app", 0, 19))},
		"nothing is left":                                   {before: join(app, configMaps("app", 0, 1)), want: placementv1beta1.ReasonSelectionEmptied, lost: 2},
		"the only object goes":                              {before: configMaps("app", 0, 1), want: placementv1beta1.ReasonSelectionEmptied, lost: 1},
		"the namespace is gone, others are left":            {before: []snapshot.Identity{namespaceNamed("app"), namespaceNamed("web")}, now: []snapshot.Identity{namespaceNamed("web")}, ended: "app", want: placementv1beta1.ReasonNamespaceDeleted, lost: 1},
		"the first object of a namespace that is going":     {before: join(app, configMaps("app", 0, 20)), now: join(app, configMaps("app", 1, 20)), ended: "app", want: placementv1beta1.ReasonNamespaceDeleted, lost: 1},
		"an object goes, and another namespace is going":    {before: join(app, configMaps("app", 0, 20)), now: join(app, configMaps("app", 1, 20)), ended: "web"},
		"more than the catch's share goes":                  {before: join(app, configMaps("app", 0, 20)), now: join(app, configMaps("app", 0, 2)), want: placementv1beta1.ReasonSelectionShrunk, lost: 18},
		"objects whose names have a hash are replaced":      {before: join(app, configMaps("app", 0, 20)), now: join(app, configMaps("app", 100, 120))},
		"they are replaced by objects of another namespace": {before: join(app, configMaps("app", 0, 20)), now: join(app, configMaps("web", 0, 20)), want: placementv1beta1.ReasonSelectionShrunk, lost: 20},
	} {
		t.Run(sentence, func(t *testing.T) {
			loss := safetycatch.HoldLoss(test.before, test.now, func(namespace string) bool { return namespace == test.ended })
			if test.want == "" {
				assert.Nil(t, loss)
				return
			}
			if assert.NotNil(t, loss) {
				assert.Equal(t, test.want, loss.Reason)
				assert.Equal(t, test.lost, loss.Total)
				assert.Equal(t, len(test.before), loss.Before)
			}
		})
	}
}
