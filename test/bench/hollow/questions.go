package hollow

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/member/question"
	"github.com/fleetflow/fleetflow/controllers/member/work"
)

// questionChanged notes that a question may have to be answered.
func (f *Fleet) questionChanged(object client.Object) {
	if member, ours := clusterv1beta1.MemberOfNamespace(object.GetNamespace()); ours {
		f.questions.AddAfter(client.ObjectKeyFromObject(object), f.behaviour(member).Latency)
	}
}

// answerQuestion answers a question by the code of the member agent. Only what an API server would say is made up.
func (f *Fleet) answerQuestion(ctx context.Context, key client.ObjectKey) error {
	member, _ := clusterv1beta1.MemberOfNamespace(key.Namespace)
	if f.behaviour(member).Vanished {
		return nil
	}
	_, err := f.answerer(key.Namespace, member).Reconcile(ctx, reconcile.Request{NamespacedName: key})
	return err
}

// answerer returns what answers the questions to a member.
func (f *Fleet) answerer(namespace, member string) *question.Answerer {
	f.mu.Lock()
	defer f.mu.Unlock()
	answerer, known := f.answerers[member]
	if !known {
		answerer = &question.Answerer{
			Namespace: namespace, Hub: f.client, Clock: clock.RealClock{},
			Questions: func(ctx context.Context, key types.NamespacedName, into *fleetflowv1alpha1.MemberQuestion) error {
				return f.cache.Get(ctx, key, into)
			},
			Rehearse: func(_ context.Context, change work.Change) []fleetflowv1alpha1.RehearsedObject {
				return rehearse(change, f.behaviour(member))
			},
		}
		f.answerers[member] = answerer
	}
	return answerer
}

// rehearse says that every object of a change would change, or would be refused.
func rehearse(change work.Change, b Behaviour) []fleetflowv1alpha1.RehearsedObject {
	var told []fleetflowv1alpha1.RehearsedObject
	for _, w := range change.Works {
		for i, manifest := range w.Manifests {
			object := fleetflowv1alpha1.RehearsedObject{
				Object: identify(i, manifest.Raw), Outcome: fleetflowv1alpha1.RehearsalChanges, Generation: 1,
				Fields: []fleetflowv1alpha1.RehearsedField{{Path: "/data/key", From: "value-0", To: "value-1"}},
			}
			if b.Fails {
				object.Outcome = fleetflowv1alpha1.RehearsalRefused
				object.By = "a hollow member"
				object.Message = "A hollow member says so"
				object.Fields = nil
			}
			told = append(told, object)
		}
	}
	return told
}
