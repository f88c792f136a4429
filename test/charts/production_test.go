package charts

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const (
	productionPage = root + "/deploy/docs/production.md"
	examples       = root + "/deploy/charts/hub-agent/examples"
)

// printedCommands are the commands of a page, in order.
func printedCommands(t *testing.T, page string) []string {
	t.Helper()
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	var commands []string
	joined := strings.ReplaceAll(string(content), "\\\n", " ")
	for line := range strings.Lines(joined) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			command, _, _ = strings.Cut(command, " # ")
			commands = append(commands, strings.Join(strings.Fields(command), " "))
		}
	}
	return commands
}

// readValues reads a file of values.
func readValues(t *testing.T, file string) values {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var v values
	require.NoError(t, yaml.UnmarshalStrict(content, &v))
	return v
}

// secretKeys are the entries of Secrets by namespace/name.
type secretKeys map[string][]string

// printedSecrets are the Secrets that the production page's commands make: its own, and those of the script that it runs.
func printedSecrets(t *testing.T) secretKeys {
	t.Helper()
	made := secretKeys{}
	own := regexp.MustCompile(`^kubectl --namespace (\S+) create secret generic (\S+) (.*)$`)
	for _, command := range printedCommands(t, productionPage) {
		if found := own.FindStringSubmatch(command); found != nil {
			made.note(found[1], found[2], strings.Fields(strings.ReplaceAll(found[3], "--from-file=", "")))
		}
	}
	script, err := os.ReadFile(examples + "/temporal-credentials.sh")
	require.NoError(t, err)
	namespaces := map[string]string{"temporal": "temporal", "agents": namespace}
	for _, found := range regexp.MustCompile(`(?m)^keep "\$(\w+)" (\S+) (.*)$`).FindAllStringSubmatch(string(script), -1) {
		require.Contains(t, namespaces, found[1])
		made.note(namespaces[found[1]], found[2], strings.Fields(found[3]))
	}
	require.Len(t, made, 4)
	return made
}

func (s secretKeys) note(namespace, name string, entries []string) {
	for _, entry := range entries {
		key, _, _ := strings.Cut(entry, "=")
		s[namespace+"/"+name] = append(s[namespace+"/"+name], key)
	}
}

// TestWhatPodsOfProductionNameIsThere renders the values for production: the page or the chart makes all that a Pod names.
func TestWhatPodsOfProductionNameIsThere(t *testing.T) {
	v := required()["hub-agent"]
	merge(v, readValues(t, examples+"/values-production.yaml"))
	rendered, err := renderAs(t, "hub-agent", "hub-agent", namespace, v)
	require.NoError(t, err)
	all := objects(t, rendered)
	made := printedSecrets(t)
	there := map[string]bool{}
	for _, object := range all {
		accessor, err := meta.Accessor(object)
		require.NoError(t, err)
		there[object.GetObjectKind().GroupVersionKind().Kind+" "+accessor.GetName()] = true
	}
	pods := 0
	for _, object := range all {
		if spec := podOf(object); spec != nil {
			pods++
			requireNamedIsThere(t, spec, made, there)
			requireQuota(t, all, spec.PriorityClassName)
		}
	}
	assert.Equal(t, 3, pods, "controllers, workers and the Pod of helm test")
}

// podOf is the spec of the Pods that an object makes, nil if it makes none.
func podOf(object runtime.Object) *corev1.PodSpec {
	switch typed := object.(type) {
	case *appsv1.Deployment:
		return &typed.Spec.Template.Spec
	case *corev1.Pod:
		return &typed.Spec
	}
	return nil
}

func requireNamedIsThere(t *testing.T, spec *corev1.PodSpec, made secretKeys, there map[string]bool) {
	t.Helper()
	assert.True(t, there["ServiceAccount "+spec.ServiceAccountName], "service account %s", spec.ServiceAccountName)
	for _, secret := range spec.ImagePullSecrets {
		assert.Contains(t, made, namespace+"/"+secret.Name)
	}
	for _, volume := range spec.Volumes {
		switch {
		case volume.Secret != nil:
			keys := made[namespace+"/"+volume.Secret.SecretName]
			assert.NotEmpty(t, keys, "nothing makes Secret %s", volume.Secret.SecretName)
			for _, file := range mountedFiles(spec, volume.Name) {
				assert.Contains(t, keys, file, "Secret %s", volume.Secret.SecretName)
			}
		case volume.ConfigMap != nil:
			assert.True(t, there["ConfigMap "+volume.ConfigMap.Name], "ConfigMap %s", volume.ConfigMap.Name)
		case volume.PersistentVolumeClaim != nil:
			assert.True(t, there["PersistentVolumeClaim "+volume.PersistentVolumeClaim.ClaimName], "claim %s", volume.PersistentVolumeClaim.ClaimName)
		}
	}
	for i := range spec.Containers {
		assert.Empty(t, spec.Containers[i].EnvFrom)
		for _, e := range spec.Containers[i].Env {
			assert.False(t, e.ValueFrom != nil && (e.ValueFrom.SecretKeyRef != nil || e.ValueFrom.ConfigMapKeyRef != nil), "%s comes from what this test does not look at", e.Name)
		}
	}
}

// mountedFiles are the files of a volume that the arguments of a Pod name.
func mountedFiles(spec *corev1.PodSpec, volume string) []string {
	var files []string
	for i := range spec.Containers {
		for _, mount := range spec.Containers[i].VolumeMounts {
			for _, arg := range spec.Containers[i].Args {
				if _, file, is := strings.Cut(arg, "="+mount.MountPath+"/"); is && mount.Name == volume {
					files = append(files, file)
				}
			}
		}
	}
	return files
}

// requireQuota asserts that the namespace admits Pods of a priority class where the API server limits those of Kubernetes.
func requireQuota(t *testing.T, all []runtime.Object, class string) {
	t.Helper()
	if class == "" {
		return
	}
	require.Contains(t, []string{"system-cluster-critical", "system-node-critical"}, class, "nothing makes this priority class")
	scope := only[*corev1.ResourceQuota](t, all).Spec.ScopeSelector.MatchExpressions
	require.Len(t, scope, 1)
	assert.Equal(t, corev1.ScopedResourceSelectorRequirement{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{class},
	}, scope[0])
}

func TestChartsMakeAQuotaForPriorityClassesOfKubernetesOnly(t *testing.T) {
	for name := range required() {
		for class, wanted := range map[string]bool{"system-node-critical": true, "high": false, "": false} {
			v := required()[name]
			merge(v, values{"priorityClassName": class})
			rendered, err := render(t, name, v)
			require.NoError(t, err)
			assert.Equal(t, wanted, strings.TrimSpace(rendered[path.Join(name, "templates", "priority.yaml")]) != "", "%s with %q", name, class)
			if wanted {
				requireQuota(t, objects(t, rendered), class)
			}
		}
	}
}

// TestTheAgentAndTemporalOfProductionAgree compares the values of both sides: who speaks TLS, who shows what, and under which name.
func TestTheAgentAndTemporalOfProductionAgree(t *testing.T) {
	agent := readValues(t, examples+"/values-production.yaml")
	server := readValues(t, examples+"/temporal-postgresql.yaml")
	at := func(v values, keys ...string) any {
		var found any = map[string]any(v)
		for _, key := range keys {
			step, is := found.(map[string]any)
			require.True(t, is, keys)
			found = step[key]
		}
		return found
	}
	assert.Equal(t, true, at(agent, "temporal", "tls", "enabled"))
	assert.Equal(t, true, at(server, "server", "config", "tls", "frontend", "server", "requireClientAuth"))
	assert.Equal(t, "default", at(server, "server", "config", "authorization", "authorizer"))
	assert.NotEmpty(t, at(agent, "temporal", "apiKey", "secretName"), "the authorizer reads tokens")
	assert.Equal(t, true, at(server, "server", "internal-frontend", "enabled"), "the server's own workers have no token")

	host, _, _ := strings.Cut(at(agent, "temporal", "address").(string), ":")
	assert.Equal(t, host, at(server, "server", "config", "tls", "frontend", "client", "serverName"))
	script, err := os.ReadFile(examples + "/temporal-credentials.sh")
	require.NoError(t, err)
	assert.Contains(t, strings.ReplaceAll(string(script), "$temporal", "temporal"), "DNS:"+host+",", "the certificate has the name that the agent calls")

	made := printedSecrets(t)
	mounted := map[string]string{}
	for _, volume := range at(server, "server", "additionalVolumes").([]any) {
		mounted[at(volume.(map[string]any), "name").(string)] = at(volume.(map[string]any), "secret", "secretName").(string)
	}
	content, err := yaml.Marshal(at(server, "server", "config"))
	require.NoError(t, err)
	for _, mount := range at(server, "server", "additionalVolumeMounts").([]any) {
		folder := at(mount.(map[string]any), "mountPath").(string)
		secret := mounted[at(mount.(map[string]any), "name").(string)]
		for _, file := range regexp.MustCompile(regexp.QuoteMeta(folder)+`/([\w.]+)`).FindAllStringSubmatch(string(content), -1) {
			assert.Contains(t, made["temporal/"+secret], file[1], "Secret %s", secret)
		}
	}
	require.Len(t, at(server, "server", "additionalInitContainers"), 1)
	serves := at(server, "server", "additionalInitContainers").([]any)[0].(map[string]any)["command"].([]any)
	for _, uri := range at(server, "server", "config", "authorization", "jwtKeyProvider", "keySourceURIs").([]any) {
		address, file, _ := strings.Cut(strings.TrimPrefix(uri.(string), "http://"), "/")
		assert.Contains(t, serves, address, "the container beside the server listens there")
		assert.Contains(t, made["temporal/"+mounted["keys"]], file)
	}
	for _, store := range []string{"default", "visibility"} {
		sql := at(server, "server", "config", "persistence", "datastores", store, "sql").(map[string]any)
		assert.Contains(t, made["temporal/"+sql["existingSecret"].(string)], sql["secretKey"])
	}
}
