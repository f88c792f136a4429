package bind_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/bind"
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

// ofKind are objects of the same names and of another kind.
func ofKind(kind string, all []snapshot.Identity) []snapshot.Identity {
	for i := range all {
		all[i].Kind = kind
	}
	return all
}

// madeAnew are the objects after each was deleted and created again.
func madeAnew(all []snapshot.Identity) []snapshot.Identity {
	for i := range all {
		all[i].UID = types.UID(fmt.Sprint("anew-", i))
	}
	return all
}

func TestWhichLossesOfASelectionAreHeld(t *testing.T) {
	app := []snapshot.Identity{namespaceNamed("app")}
	role := snapshot.Identity{GroupKind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, Name: "reader"}
	for sentence, test := range map[string]struct {
		before, now []snapshot.Identity
		held        *snapshot.Loss
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
		"five of few go":                                    {before: configMaps("app", 0, 6), now: configMaps("app", 5, 6)},
		"six of few go":                                     {before: configMaps("app", 0, 7), now: configMaps("app", 6, 7), want: placementv1beta1.ReasonSelectionShrunk, lost: 6},
		"six of fifty-nine go":                              {before: configMaps("app", 0, 59), now: configMaps("app", 6, 59), want: placementv1beta1.ReasonSelectionShrunk, lost: 6},
		"six of sixty go":                                   {before: configMaps("app", 0, 60), now: configMaps("app", 6, 60)},
		"seven of sixty go":                                 {before: configMaps("app", 0, 60), now: configMaps("app", 7, 60), want: placementv1beta1.ReasonSelectionShrunk, lost: 7},
		"twenty-five of a thousand go":                      {before: configMaps("app", 0, 1000), now: configMaps("app", 25, 1000)},
		"twenty-six of a thousand go":                       {before: configMaps("app", 0, 1000), now: configMaps("app", 26, 1000), want: placementv1beta1.ReasonSelectionShrunk, lost: 26},
		"some are replaced, six are not":                    {before: configMaps("app", 0, 20), now: configMaps("app", 14, 28), want: placementv1beta1.ReasonSelectionShrunk, lost: 14},
		"some are replaced, five are not":                   {before: configMaps("app", 0, 20), now: configMaps("app", 14, 29)},
		"they are replaced by objects of another kind":      {before: join(app, configMaps("app", 0, 20)), now: join(app, ofKind("Secret", configMaps("app", 0, 20))), want: placementv1beta1.ReasonSelectionShrunk, lost: 20},
		"all are made anew":                                 {before: configMaps("app", 0, 20), now: madeAnew(configMaps("app", 0, 20))},
		"others take the place of all":                      {before: configMaps("app", 0, 1), now: configMaps("app", 1, 2)},
		"nothing is left, and the namespace is going":       {before: join(app, configMaps("app", 0, 1)), ended: "app", want: placementv1beta1.ReasonSelectionEmptied, lost: 2},
		"nothing is lost, and the namespace is going":       {before: app, now: app, ended: "app"},
		"what is cluster-scoped goes":                       {before: join(app, []snapshot.Identity{role}), now: app, ended: "reader"},
		"objects whose names have a hash are replaced":      {before: join(app, configMaps("app", 0, 20)), now: join(app, configMaps("app", 100, 120))},
		"they are replaced by objects of another namespace": {before: join(app, configMaps("app", 0, 20)), now: join(app, configMaps("web", 0, 20)), want: placementv1beta1.ReasonSelectionShrunk, lost: 20},
		"some of a held loss are back":                      {before: configMaps("app", 0, 20), now: configMaps("app", 3, 20), held: &snapshot.Loss{Reason: placementv1beta1.ReasonSelectionShrunk}, want: placementv1beta1.ReasonSelectionShrunk, lost: 3},
		"all of a held loss are back":                       {before: configMaps("app", 0, 20), now: configMaps("app", 0, 21), held: &snapshot.Loss{Reason: placementv1beta1.ReasonSelectionShrunk}},
	} {
		t.Run(sentence, func(t *testing.T) {
			loss := bind.HoldLoss(test.before, test.now, test.held, func(namespace string) bool { return namespace == test.ended })
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

func TestALossIsAcceptedByItsTokenOrForGood(t *testing.T) {
	gone := func(string) bool { return false }
	placement := func(key, value string) placementv1beta1.PlacementObject {
		return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: "crp-uid", Annotations: map[string]string{key: value}}}
	}
	lost := bind.HoldLoss(configMaps("app", 0, 8), nil, nil, gone)
	same := bind.HoldLoss(madeAnew(configMaps("app", 0, 8)), nil, nil, gone)
	other := bind.HoldLoss(configMaps("app", 0, 9), nil, nil, gone)
	token := lost.Token(placement("", ""), 3)
	assert.Equal(t, token, same.Token(placement("", ""), 3), "it is told by kinds and names")
	accepted := placementv1beta1.SelectionLossAcceptedAnnotation
	recreated := placement(accepted, token)
	recreated.SetUID("crp-uid-2")
	for sentence, test := range map[string]struct {
		lost      *snapshot.Loss
		placement placementv1beta1.PlacementObject
		index     int
		want      bool
	}{
		"nobody has":                         {lost, placement("", ""), 3, false},
		"a user has":                         {lost, placement(accepted, token), 3, true},
		"of the snapshot before":             {lost, placement(accepted, token), 4, false},
		"of other objects":                   {other, placement(accepted, token), 3, false},
		"of an earlier placement":            {lost, recreated, 3, false},
		"of nothing in particular":           {lost, placement(accepted, "true"), 3, false},
		"the placement opts out":             {other, placement(placementv1beta1.AcceptRemovalsAnnotation, "true"), 3, true},
		"the placement does not opt out":     {lost, placement(placementv1beta1.AcceptRemovalsAnnotation, "false"), 3, false},
		"the placement says nothing of use":  {lost, placement(placementv1beta1.AcceptRemovalsAnnotation, ""), 3, false},
		"removals of clusters were accepted": {lost, placement(placementv1beta1.RemovalsAcceptedAnnotation, token), 3, false},
	} {
		assert.Equal(t, test.want, test.lost.IsAccepted(test.placement, test.index), sentence)
	}
}
