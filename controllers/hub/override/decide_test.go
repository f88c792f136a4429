package override

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// made is an override that was made some minutes after the start.
func made(minute int, name string, selects ...string) Override {
	return Override{NamespacedName: types.NamespacedName{Name: name}, Created: start.Add(time.Duration(minute) * time.Minute), Selects: selects}
}

func TestDecide(t *testing.T) {
	const valid, conflict = placementv1beta1.ReasonOverrideValid, placementv1beta1.ReasonOverrideConflict
	cases := map[string]struct {
		overrides []Override
		want      map[string]string // reasons by name
	}{
		"no overrides, no verdicts":      {nil, map[string]string{}},
		"one is valid":                   {[]Override{made(0, "a", "x")}, map[string]string{"a": valid}},
		"of different objects, both are": {[]Override{made(0, "a", "x"), made(1, "b", "y")}, map[string]string{"a": valid, "b": valid}},
		"the older one keeps the object, whatever the order they are found in": {
			[]Override{made(1, "a", "x"), made(0, "b", "x")}, map[string]string{"a": conflict, "b": valid}},
		"of one age, the lower name keeps it": {[]Override{made(0, "b", "x"), made(0, "a", "x")}, map[string]string{"a": valid, "b": conflict}},
		"one object in common is enough":      {[]Override{made(0, "a", "x", "y"), made(1, "b", "z", "y")}, map[string]string{"a": valid, "b": conflict}},
		"only one of many keeps the object": {
			[]Override{made(0, "a", "x"), made(1, "b", "x"), made(2, "c", "x")}, map[string]string{"a": valid, "b": conflict, "c": conflict}},
		"one that is not valid keeps nothing from a third one": {
			[]Override{made(0, "a", "x"), made(1, "b", "x", "y"), made(2, "c", "y")}, map[string]string{"a": valid, "b": conflict, "c": valid}},
		"one that selects an object twice does not stand in its own way": {[]Override{made(0, "a", "x", "x")}, map[string]string{"a": valid}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for name, verdict := range Decide(tc.overrides) {
				got[name.Name] = verdict.Reason
				assert.Equal(t, verdict.Reason == valid, verdict.Valid())
				assert.NotEmpty(t, verdict.Message)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestDecideSaysWhatToDo(t *testing.T) {
	verdicts := Decide([]Override{made(0, "cro-1", "Namespace app"), made(1, "cro-2", "Namespace web", "Namespace app")})
	assert.Equal(t, "invalid resource selector: Namespace app has been selected by both cro-1 and cro-2, which is not supported; "+
		"cro-1 is older, and this override has no effect: take the object out of one of the two, or move the rules for it to cro-1",
		verdicts[types.NamespacedName{Name: "cro-2"}].Message)
}

func TestThereIsALimit(t *testing.T) {
	crowd := func(namespace string) []Override {
		var overrides []Override
		for i := range Limit + 2 {
			o := made(Limit+2-i, fmt.Sprintf("o%03d", i), fmt.Sprintf("Namespace n%d", i)) // the first is the youngest
			o.Namespace = namespace
			overrides = append(overrides, o)
		}
		return overrides
	}
	for namespace, message := range map[string]string{
		"":    "clusterResourceOverride limit has been reached: at most 100 cluster resources can be created; this override has no effect: ",
		"web": "resourceOverride limit has been reached: at most 100 resources can be created in namespace web; this override has no effect: ",
	} {
		verdicts := Decide(crowd(namespace))
		exceeding := map[string]bool{}
		for name, verdict := range verdicts {
			if !verdict.Valid() {
				exceeding[name.Name] = true
				assert.Equal(t, placementv1beta1.ReasonOverrideLimitExceeded, verdict.Reason)
				assert.Contains(t, verdict.Message, message)
			}
		}
		assert.Equal(t, map[string]bool{"o000": true, "o001": true}, exceeding, "the youngest two are too many")
	}
}

func TestATenantDoesNotTakeThePlacesOfAnother(t *testing.T) {
	var overrides []Override
	for i := range Limit + 5 {
		flood := made(i, fmt.Sprintf("o%03d", i), fmt.Sprintf("ConfigMap flood/c%d", i))
		flood.Namespace = "flood"
		overrides = append(overrides, flood)
	}
	late := made(Limit+10, "late", "ConfigMap web/c")
	late.Namespace = "web"
	overrides = append(overrides, late)
	exceeding := 0
	for name, verdict := range Decide(overrides) {
		if !verdict.Valid() {
			exceeding++
			assert.Equal(t, "flood", name.Namespace)
		}
	}
	assert.Equal(t, 5, exceeding)
	assert.Empty(t, limitMoved([]Override{late}, nil))
	assert.Len(t, limitMoved(overrides, nil), 5, "of each namespace by itself")
}

func TestLimitMoved(t *testing.T) {
	name := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	var overrides []Override
	for i := range Limit {
		overrides = append(overrides, made(0, fmt.Sprintf("o%03d", i)))
	}
	const exceeded = placementv1beta1.ReasonOverrideLimitExceeded
	cases := map[string]struct {
		overrides []Override
		told      map[types.NamespacedName]string
		want      []types.NamespacedName
	}{
		"below the limit, nothing":              {overrides[:2], nil, nil},
		"at the limit, nothing":                 {overrides, map[types.NamespacedName]string{name("o001"): placementv1beta1.ReasonOverrideConflict}, nil},
		"one that came in":                      {overrides, map[types.NamespacedName]string{name("o099"): exceeded}, []types.NamespacedName{name("o099")}},
		"one that fell out":                     {append(overrides[:Limit:Limit], made(-1, "old")), nil, []types.NamespacedName{name("o099")}},
		"one that was out already is left":      {append(overrides[:Limit:Limit], made(1, "new")), map[types.NamespacedName]string{name("new"): exceeded}, nil},
		"one whose condition is not set is out": {append(overrides[:Limit:Limit], made(1, "new")), nil, []types.NamespacedName{name("new")}},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, limitMoved(tc.overrides, tc.told))
		})
	}
}
