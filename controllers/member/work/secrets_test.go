package work

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// secretLetters are those of the secrets: some are written differently in JSON and in Go.
const secretLetters = "abcXYZ019\"\\\n\t<>&é/+= "

// drawSecret returns a random secret that cannot occur in other texts.
func drawSecret(chance *rand.Rand) string {
	letters := []rune(secretLetters)
	text := []rune(fmt.Sprintf("s%04d", chance.IntN(10000)))
	for range 1 + chance.IntN(30) {
		text = append(text, letters[chance.IntN(len(letters))])
	}
	return string(text)
}

// spellingsOf returns the forms in which a text may be written.
func spellingsOf(text string) []string {
	inJSON, _ := json.Marshal(text)
	inGo := strconv.Quote(text)
	return []string{text, base64.StdEncoding.EncodeToString([]byte(text)), inGo[1 : len(inGo)-1], string(inJSON[1 : len(inJSON)-1])}
}

// echoingRefusals are refusals of API servers that repeat the request.
var echoingRefusals = map[string]func(secret string) error{
	"not at all": func(string) error { return nil },
	"as invalid": func(secret string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", field.ErrorList{field.Invalid(field.NewPath("data"), secret, "it is no good")})
	},
	"as malformed": func(secret string) error {
		return apierrors.NewBadRequest(fmt.Sprintf("cannot read %q, %v and %s", secret, []byte(secret), secret))
	},
	"by a policy": func(secret string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New("I saw "+strings.Join(spellingsOf(secret), " or ")))
	},
	"by a webhook": func(secret string) error {
		return apierrors.NewInternalError(fmt.Errorf("failed calling webhook: %s", strings.Join(spellingsOf(secret), " or ")))
	},
}

func secretManifest(chance *rand.Rand, secret string) placementv1beta1.Manifest {
	content := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "n", "name": "s"}}
	if chance.IntN(2) == 0 {
		content["stringData"] = map[string]any{"token": secret}
	} else {
		content["data"] = map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(secret))}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		panic(err) // of strings; it cannot fail
	}
	return placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
}

// TestNoSecretIsEverShown looks for secrets, of the hub and of the member, in all that the agent
// reports and logs.
func TestNoSecretIsEverShown(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 7)) // the same every time
	never := placementv1beta1.WhenToTakeOverTypeNever
	ifNoDiff := placementv1beta1.WhenToTakeOverTypeIfNoDiff
	fully := placementv1beta1.ComparisonOptionTypeFullComparison
	for name, strategy := range map[string]placementv1beta1.ApplyStrategy{
		"client-side":               {},
		"client-side, fully":        {ComparisonOption: fully},
		"if not drifted":            {WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted},
		"server-side":               {Type: placementv1beta1.ApplyStrategyTypeServerSideApply},
		"taken over if no diff":     {WhenToTakeOver: ifNoDiff},
		"never taken over":          {WhenToTakeOver: never},
		"to report only":            {Type: placementv1beta1.ApplyStrategyTypeReportDiff},
		"to report only, and fully": {Type: placementv1beta1.ApplyStrategyTypeReportDiff, ComparisonOption: fully},
	} {
		for refused, tell := range echoingRefusals {
			mine := drawSecret(chance)
			theirs := drawSecret(chance)
			t.Run(name+", refused "+refused, func(t *testing.T) {
				told := collectTexts(t, strategy, secretManifest(chance, mine), [2]error{tell(mine), tell(theirs)}, theirs)
				for _, secret := range append(spellingsOf(mine), spellingsOf(theirs)...) {
					assert.NotContains(t, told, secret)
				}
			})
		}
	}
}

// collectTexts returns all that an agent reports and logs about a Secret that is new, then refused,
// then drifted.
func collectTexts(t *testing.T, strategy placementv1beta1.ApplyStrategy, manifest placementv1beta1.Manifest, refusals [2]error, theirs string) string {
	t.Helper()
	w := withMirroring(manifestWork("w"))
	w.Spec.ApplyStrategy = &strategy
	w.Spec.Workload.Manifests = []placementv1beta1.Manifest{manifest}
	a := newAgent(t, []client.Object{w}, nil)
	a.Mapper.(*meta.DefaultRESTMapper).Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	o := a.Options
	refusal := refusals[0]
	o.Member = refuseSecrets(a.member, &refusal)
	a.Reconciler = NewReconciler(o)
	a.mode.mode = ModeApply
	var told strings.Builder
	ctx := log.IntoContext(t.Context(), funcr.New(func(prefix, args string) { told.WriteString(prefix + args) }, funcr.Options{Verbosity: 10}))
	look := func() {
		if _, err := a.Reconcile(ctx, requestForWork(testNamespace, "w")); err != nil {
			told.WriteString(err.Error()) // the controller logs it
		}
		data, err := json.Marshal(a.work(t, "w").Status)
		require.NoError(t, err)
		told.Write(data)
	}
	look()
	theirSecret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Data: map[string][]byte{"token": []byte(theirs), "more": []byte(theirs)}}
	if !a.readMember(t, &corev1.Secret{}, "s") {
		require.NoError(t, a.member.Create(t.Context(), theirSecret))
	} else {
		got := &corev1.Secret{}
		require.True(t, a.readMember(t, got, "s"))
		got.Data = theirSecret.Data
		require.NoError(t, a.member.Update(t.Context(), got))
	}
	refusal = refusals[1]
	a.afterRetryDelay()
	look()
	refusal = nil
	a.afterRetryDelay()
	look()
	return told.String()
}

// refuseSecrets returns a member that refuses to write Secrets, also in dry runs, as long as
// refusal is set.
func refuseSecrets(c client.WithWatch, refusal *error) client.WithWatch {
	isSecret := func(o client.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind == "Secret" }
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if isSecret(o) && *refusal != nil {
				return *refusal
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if isSecret(o) && *refusal != nil {
				return *refusal
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
}
