package work

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	widgetDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com","names":{"kind":"Widget","plural":"widgets"},"scope":"Namespaced"}}`
	widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"n","name":"a"}}`
)

// lateMapper is a mapper that knows Widgets only after some questions.
type lateMapper struct {
	meta.RESTMapper
	ignorant atomic.Int32
}

func (m *lateMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Kind == "Widget" && m.ignorant.Add(-1) >= 0 {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

func workWith(name string, manifests ...string) *placementv1beta1.Work {
	w := manifestWork(name)
	for _, text := range manifests {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
	}
	return w
}

// newLateMapperAgent is an agent on a member that serves Widgets only after some questions.
func newLateMapperAgent(t *testing.T, questions int32, works ...client.Object) (*agent, *lateMapper) {
	t.Helper()
	a := newAgent(t, works, nil)
	m := &lateMapper{RESTMapper: a.Mapper}
	m.ignorant.Store(questions)
	a.engine.Mapper = m
	a.kindTimeout = time.Minute
	return a, m
}

// appliedReasonAndMessage returns the reason and message of a manifest's condition Applied.
func (a *agent) appliedReasonAndMessage(t *testing.T, name string, ordinal int) (reason, message string) {
	t.Helper()
	c := meta.FindStatusCondition(a.work(t, name).Status.ManifestConditions[ordinal].Conditions, placementv1beta1.ConditionTypeApplied)
	require.NotNil(t, c)
	return c.Reason, c.Message
}

func TestAResourceWaitsForTheDefinitionItComesWith(t *testing.T) {
	a, _ := newLateMapperAgent(t, 3, workWith("w", widget, widgetDefinition))
	writes, _, err := a.reconcileByName(t, "w")
	require.NoError(t, err)
	assert.Equal(t, []string{
		"member create AppliedWork w",
		"member status AppliedWork w",
		"member create CustomResourceDefinition widgets.example.com",
		"member create Widget a",
		"hub status Work w", // once, with both applied
		"member status AppliedWork w",
	}, writes)
	assert.Equal(t, "AllManifestsApplied", a.conditionReasons(t, "w")[0])
}

func TestWaitingForAKindHasAnEnd(t *testing.T) {
	a, m := newLateMapperAgent(t, 1000, workWith("w", widgetDefinition, widget))
	a.kindTimeout = 0
	a.mustReconcile(t, "w")
	reason, message := a.appliedReasonAndMessage(t, "w", 1)
	assert.Equal(t, placementv1beta1.ReasonDecodingErred, reason)
	assert.Contains(t, message, "widgets.example.com, which is placed with it, has been applied, but the cluster does not serve the kind yet")

	m.ignorant.Store(0)
	a.afterRetryDelay().mustReconcile(t, "w")
	assert.Equal(t, "AllManifestsApplied", a.conditionReasons(t, "w")[0])
}

func TestAResourceWhoseDefinitionFailsIsNotWaitedFor(t *testing.T) {
	a, _ := newLateMapperAgent(t, 1000, workWith("w", widgetDefinition, widget))
	a.fail = func(write string) error {
		if write == "member create CustomResourceDefinition widgets.example.com" {
			return errors.New("refused")
		}
		return nil
	}
	a.mustReconcile(t, "w")
	_, message := a.appliedReasonAndMessage(t, "w", 1)
	assert.Contains(t, message, "widgets.example.com, which is placed with it, could not be applied")
}

func TestAKindOfAnotherWorkIsNotWaitedFor(t *testing.T) {
	a, _ := newLateMapperAgent(t, 1000, workWith("w", widget))
	a.mustReconcile(t, "w")
	_, message := a.appliedReasonAndMessage(t, "w", 0)
	assert.Contains(t, message, "after its CustomResourceDefinition is installed")
	assert.Equal(t, []string{"w"}, a.memories.worksLacking("example.com"), "its definition wakes it")
}

func TestAMissingNamespaceIsWatchedFor(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.fail = func(write string) error {
		if write == "member create ConfigMap a" {
			return errors.New(`namespaces "n" not found`)
		}
		return nil
	}
	a.mustReconcile(t, "w")
	_, message := a.appliedReasonAndMessage(t, "w", 0)
	assert.Contains(t, message, `namespaces "n" not found`)
	a.mustReconcile(t, "w")
	namespace := objectRef{gvr: namespaceResource, name: types.NamespacedName{Name: "n"}}
	assert.Contains(t, a.watcher.interestOf["w"], namespace)

	a.fail = func(string) error { return nil }
	a.enqueueAfterEvent("w", namespace)
	a.clock.SetTime(a.clock.Now().Add(minRetryDelay))
	a.mustReconcile(t, "w")
	assert.Equal(t, "AllManifestsApplied", a.conditionReasons(t, "w")[0])
}
