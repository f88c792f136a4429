package apply

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

func TestATrierOnlyTries(t *testing.T) {
	inner := &recording{}
	trier := &trier{Client: inner}
	object := &unstructured.Unstructured{}
	require.NoError(t, trier.Create(t.Context(), object))
	require.NoError(t, trier.Update(t.Context(), object))
	require.NoError(t, trier.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{}`))))
	require.NoError(t, trier.Delete(t.Context(), object))
	assert.Equal(t, []string{"create All", "update All", "patch All", "delete All"}, inner.asked)
	assert.True(t, trier.deleted)
}

// recording notes which writes are dry runs.
type recording struct {
	client.Client
	asked []string
}

func (r *recording) Create(_ context.Context, _ client.Object, options ...client.CreateOption) error {
	r.asked = append(r.asked, "create "+strings.Join((&client.CreateOptions{}).ApplyOptions(options).DryRun, ""))
	return nil
}

func (r *recording) Update(_ context.Context, _ client.Object, options ...client.UpdateOption) error {
	r.asked = append(r.asked, "update "+strings.Join((&client.UpdateOptions{}).ApplyOptions(options).DryRun, ""))
	return nil
}

func (r *recording) Patch(_ context.Context, _ client.Object, _ client.Patch, options ...client.PatchOption) error {
	r.asked = append(r.asked, "patch "+strings.Join((&client.PatchOptions{}).ApplyOptions(options).DryRun, ""))
	return nil
}

func (r *recording) Delete(_ context.Context, _ client.Object, options ...client.DeleteOption) error {
	r.asked = append(r.asked, "delete "+strings.Join((&client.DeleteOptions{}).ApplyOptions(options).DryRun, ""))
	return nil
}

func TestWhatManifestsSayAlikeHasDrifted(t *testing.T) {
	read := func(text string) map[string]any {
		out := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(text), &out))
		return out
	}
	before := read(`{"spec":{"replicas":1,"image":"a","list":[{"name":"x","v":"1"},{"name":"y"}]},"metadata":{"annotations":{"a/b":"c"}}}`)
	after := read(`{"spec":{"replicas":1,"image":"b","list":[{"name":"x","v":"2"},{"name":"y"}]},"metadata":{"annotations":{"a/b":"c"}}}`)
	for pointer, alike := range map[string]bool{
		"/spec/replicas": true, "/spec/image": false, "/spec/list/0/v": false, "/spec/list/1/name": true, "/metadata/annotations/a~1b": true,
		"/spec/unknown": false, "/metadata/annotations/other": true, "/spec/list/1/filled": true, "/spec/list/9": false,
	} {
		assert.Equal(t, alike, isSaidAlike(before, after, pointer), pointer)
	}
	assert.False(t, isSaidAlike(before, read(`{"spec":{"image":"a"}}`), "/spec/replicas"), "it leaves the manifest")
}

const credential = "hunter2-and-much-more"

// planted has a value that must not be told, in each place where it is known to be one.
var planted = []string{
	`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"stringData":{"a":"%s"}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"db-password":"%s"}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"API_TOKEN":"%s"}}`,
	`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"c","env":[{"name":"DB_PASSWORD","value":"%s"}]}]}}`,
	`{"apiVersion":"a.b/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"auth":{"clientSecret":"%s"}}}`,
}

func TestACredentialIsNeitherInFieldsNorInWords(t *testing.T) {
	for _, text := range planted {
		manifest := func(value string) Manifest { return Decode(raw(strings.ReplaceAll(text, "%s", value)))[0] }
		m := manifest(credential)
		require.Nil(t, m.Problem, text)
		live := manifest("other-value-of-it").Object
		r := rehearsed{req: Request{Manifest: m}, out: Rehearsal{Live: live}}
		r.result.Object = m.Object
		r.collectSecrets()
		told := r.succeeded()
		data, err := json.Marshal(told.RehearsedObject)
		require.NoError(t, err)
		assert.Equal(t, fleetflowv1alpha1.RehearsalChanges, told.Outcome, "that it changes is told: %s", text)
		assert.NotContains(t, string(data), "hunter2", text)
		assert.NotContains(t, string(data), "other-value", text)
		assert.NotContains(t, string(data), "#", "the mark of a masked value is not told: %s", data)

		said := rehearsed{req: Request{Manifest: m}, out: Rehearsal{Live: live}}
		said.collectSecrets()
		refusal := said.failed(refusalProblem(errSaid("denied: value "+credential+" of "+live.GetName()), m, live))
		assert.NotContains(t, refusal.Message, "hunter2", text)

		// What a comparison found without a mask, and cut off.
		found := rehearsed{req: Request{Manifest: m}, out: Rehearsal{Live: live}}
		found.collectSecrets()
		assert.NotContains(t, found.valueToTell(credential[:len(credential)-3]), "hunter2", text)
	}
}

func errSaid(words string) error { return said(403, "Forbidden", words) }

func TestPlainFieldsAreTold(t *testing.T) {
	for name, is := range map[string]bool{
		"password": true, "DB_PASSWORD": true, "clientSecret": true, "apiKey": true, "token": true, "privateKey": true,
		"secretName": false, "imagePullSecrets": false, "secretKeyRef": false, "key": false, "automountServiceAccountToken": true,
		"tokenExpirationSeconds": false, "image": false,
	} {
		assert.Equal(t, is, isSecretName(name), name)
	}
	assert.Equal(t, "a"+compare.Redacted, withoutMarks("a"+compare.Redacted+"#0f3b"), "a mark that is cut off goes as well")
}

func TestWordsAreOneLineAndCutOff(t *testing.T) {
	assert.Equal(t, "a b c", OneLine("a\n\n b\tc\x1b"))
	long := OneLine(strings.Repeat("é", 1000))
	assert.LessOrEqual(t, len(long), maxRehearsedWords)
	assert.True(t, strings.HasSuffix(long, "…"))
}
