package command

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// answering has the hub end every rehearsal at once, with a status. asked gets its spec.
func answering(c *console, status fleetflowv1alpha1.RehearsalStatus, reason string) (asked *fleetflowv1alpha1.RehearsalSpec) {
	asked = &fleetflowv1alpha1.RehearsalSpec{}
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		Create: func(ctx context.Context, hub client.WithWatch, object client.Object, options ...client.CreateOption) error {
			rehearsal, is := object.(fleetflowv1alpha1.RehearsalObject)
			if is {
				*asked = *rehearsal.GetRehearsalSpec()
				rehearsal.SetUID("uid-r")
				*rehearsal.GetRehearsalStatus() = *status.DeepCopy()
				over := metav1.ConditionTrue
				if reason == fleetflowv1alpha1.ReasonRehearsalInvalid {
					over = metav1.ConditionFalse
				}
				meta.SetStatusCondition(&rehearsal.GetRehearsalStatus().Conditions, metav1.Condition{
					Type: fleetflowv1alpha1.ConditionTypeCompleted, Status: over, Reason: reason, Message: "no such thing",
				})
			}
			return hub.Create(ctx, object, options...)
		},
	})
	return asked
}

// found is what three clusters have answered.
var found = fleetflowv1alpha1.RehearsalStatus{
	ResourceSnapshotIndex: "5", ClusterCount: 3, Answered: 3, Clusters: fleetflowv1alpha1.RehearsalCounts{Refused: 1, Changes: 2},
	Groups: []fleetflowv1alpha1.RehearsalGroup{
		{Outcome: fleetflowv1alpha1.RehearsalRefused, Object: "ConfigMap shop/settings", By: "quota small", Message: "exceeded quota", ClusterCount: 1, Clusters: []string{"member-1"}},
		{Outcome: fleetflowv1alpha1.RehearsalChanges, Object: "ConfigMap shop/settings", Fields: []string{"/data/theme"}, ClusterCount: 12, Clusters: []string{"member-2", "member-3"}},
	},
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit := &cli.Exit{}
	require.ErrorAs(t, err, &exit)
	return exit.Code
}

func TestARehearsalIsSummedUpByWhatIsAlike(t *testing.T) {
	c := newConsole(t, release()...)
	asked := answering(c, found, fleetflowv1alpha1.ReasonRehearsalAllAnswered)
	assert.Equal(t, cli.CodeFailed, exitCode(t, c.run("rehearse", "placement/web", "--to", "4", "--clusters", "member-1,member-2", "--timeout", "30s")))
	assert.Equal(t, "4", asked.ResourceSnapshotIndex)
	assert.Equal(t, []string{"member-1", "member-2"}, asked.Clusters)
	assert.Equal(t, "30s", asked.Timeout.Duration.String())
	assert.Contains(t, c.Out.String(), `Snapshot 5 of web on 3 clusters: 1 refused, 2 changes.
✗ refused on 1 of 3: exceeded quota: ConfigMap shop/settings (by quota small)
    member-1
~ changes on 12 of 3: ConfigMap shop/settings /data/theme
    member-2, member-3 and 10 more
It stays as clusterrehearsal/`)
}

func TestARehearsalIsPrintedForPrograms(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		c := newConsole(t, release()...)
		answering(c, found, fleetflowv1alpha1.ReasonRehearsalAllAnswered)
		assert.Equal(t, cli.CodeFailed, exitCode(t, c.run("rehearse", "placement/web", "-o", format)), "the exit code is the same")
		read := &fleetflowv1alpha1.ClusterRehearsal{}
		require.NoError(t, yaml.Unmarshal(c.Out.Bytes(), read), "nothing else is printed: %s", c.Out)
		assert.Equal(t, "ClusterRehearsal", read.Kind)
		assert.Equal(t, found.Clusters, read.Status.Clusters)
		assert.Equal(t, found.Groups, read.Status.Groups)
	}
}

func TestARehearsalAsksTheClustersOfAStage(t *testing.T) {
	c := newConsole(t, release()...)
	asked := answering(c, found, fleetflowv1alpha1.ReasonRehearsalAllAnswered)
	_ = c.run("rehearse", "web", "--strategy", "careful", "--stage", "production")
	assert.Equal(t, []string{"member-2", "member-3"}, asked.Clusters)
	assert.Equal(t, cli.CodeUsage, exitCode(t, c.run("rehearse", "web", "--strategy", "careful", "--stage", "other")))
}

func TestAPlanAsksTheClustersIfThatIsWanted(t *testing.T) {
	c := newConsole(t, release()...)
	answering(c, found, fleetflowv1alpha1.ReasonRehearsalAllAnswered)
	assert.Equal(t, cli.CodeFailed, exitCode(t, c.run("plan", "web", "--strategy", "careful", "--no-diff", "--rehearse")))
	assert.Contains(t, c.Out.String(), "Roll snapshot 5 (the latest) of placement/web out")
	assert.Contains(t, c.Out.String(), "Snapshot 5 of web on 3 clusters: 1 refused, 2 changes.")
	assert.Equal(t, cli.CodeUsage, exitCode(t, c.run("plan", "web", "--strategy", "careful", "--rehearse", "-o", "json")))
}

func TestTheExitCodeSaysWhatWasFound(t *testing.T) {
	for sentence, test := range map[string]struct {
		counts fleetflowv1alpha1.RehearsalCounts
		code   int
	}{
		"all is well":                  {fleetflowv1alpha1.RehearsalCounts{Same: 1, Creates: 1, Removes: 1}, 0},
		"something is refused":         {fleetflowv1alpha1.RehearsalCounts{Refused: 1, Unknown: 1}, cli.CodeFailed},
		"an object belongs to another": {fleetflowv1alpha1.RehearsalCounts{Conflicts: 1}, cli.CodeFailed},
		"a cluster is unknown":         {fleetflowv1alpha1.RehearsalCounts{Unknown: 1, Same: 2}, cli.CodeUnknown},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, release()...)
			answering(c, fleetflowv1alpha1.RehearsalStatus{Clusters: test.counts}, fleetflowv1alpha1.ReasonRehearsalAllAnswered)
			assert.Equal(t, test.code, exitCode(t, c.run("rehearse", "web")))
		})
	}
}

func TestARehearsalOfWhatIsNotThereIsAnError(t *testing.T) {
	c := newConsole(t, release()...)
	answering(c, fleetflowv1alpha1.RehearsalStatus{}, fleetflowv1alpha1.ReasonRehearsalInvalid)
	assert.EqualError(t, c.run("rehearse", "web"), "no cluster was asked: no such thing")
}

func TestDetailsAreShownToThoseWhoMayReadThem(t *testing.T) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	require.NoError(t, json.NewEncoder(writer).Encode([]fleetflowv1alpha1.RehearsedObject{{
		Object:  placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "shop", Name: "settings"},
		Outcome: fleetflowv1alpha1.RehearsalChanges, Fields: []fleetflowv1alpha1.RehearsedField{{Path: "/data/theme", From: "light", To: "da\x1b[2Jrk"}},
	}}))
	require.NoError(t, writer.Close())
	question := &fleetflowv1alpha1.MemberQuestion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-member-2", Name: "q", Labels: map[string]string{fleetflowv1alpha1.RehearsalLabel: "uid-r"}},
		Spec:       fleetflowv1alpha1.MemberQuestionSpec{Type: fleetflowv1alpha1.QuestionRehearse, AskedFor: fleetflowv1alpha1.QuestionOrigin{UID: "uid-r"}},
		Status:     fleetflowv1alpha1.MemberQuestionStatus{Rehearsal: &fleetflowv1alpha1.RehearsalAnswer{Objects: packed.Bytes()}},
	}
	c := newConsole(t, append(release(), question)...)
	answering(c, found, fleetflowv1alpha1.ReasonRehearsalAllAnswered)
	_ = c.run("rehearse", "web", "--details")
	assert.Contains(t, c.Out.String(), "\nmember-2\n  ~ changes   ConfigMap shop/settings\n      /data/theme: light → da [2Jrk\n")

	c = newConsole(t, append(release(), question)...)
	answering(c, found, fleetflowv1alpha1.ReasonRehearsalAllAnswered)
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, is := list.(*fleetflowv1alpha1.MemberQuestionList); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "memberquestions"}, "", nil)
		}
		return hub.List(ctx, list, options...)
	}})
	assert.Equal(t, cli.CodeFailed, exitCode(t, c.run("rehearse", "web", "--details")))
	assert.Contains(t, c.Err.String(), "which you may not read")
	assert.NotContains(t, c.Out.String(), "light")
}
