package realnode

import (
	"archive/tar"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestMissingPackagesAreNamedOnce(t *testing.T) {
	there := func(string) (string, bool) { return "/bin/x", true }
	without := func(names ...string) func(string) (string, bool) {
		return func(name string) (string, bool) { return "/bin/" + name, !slices.Contains(names, name) }
	}
	for name, test := range map[string]struct {
		look    func(string) (string, bool)
		folders []string
		missing []string
	}{
		"all is there":              {there, pluginFolders[1:], nil},
		"one package, two of it":    {without("ctr", "containerd"), pluginFolders, []string{"containerd"}},
		"no plug-ins":               {there, nil, []string{pluginsPackage}},
		"several, in a fixed order": {without("runc", "ip", "conntrack"), nil, []string{"conntrack", pluginsPackage, "iproute2", "runc"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, missing := find(test.look, func(folder string) bool { return slices.Contains(test.folders, folder) })
			assert.Equal(t, test.missing, missing)
		})
	}
}

func TestARegistryWithoutTLSIsSpokenToAsTheNodeIsTold(t *testing.T) {
	node := &Node{Dir: t.TempDir()}
	require.NoError(t, node.PullPlainly("10.210.7.5:5000"))
	told, err := os.ReadFile(filepath.Join(node.Dir, "registries", "10.210.7.5:5000", "hosts.toml"))
	require.NoError(t, err)
	assert.Equal(t, "server = \"http://10.210.7.5:5000\"\n[host.\"http://10.210.7.5:5000\"]\n  capabilities = [\"pull\", \"resolve\"]\n", string(told))
	assert.Contains(t, node.containerd(), `config_path = "/run/node/registries"`)
}

func TestProgramsAreToldOfTheNode(t *testing.T) {
	node := &Node{Name: "member-1-node-1", Group: "devfleet-7-member-1", Host: "10.210.7.5", Address: "10.210.7.6", Zone: "zone-1"}
	files, err := node.configs()
	require.NoError(t, err)
	var kubelet struct {
		CgroupRoot string   `json:"cgroupRoot"`
		ClusterDNS []string `json:"clusterDNS"`
		FailV1     *bool    `json:"failCgroupV1"`
	}
	require.NoError(t, json.Unmarshal(files["kubelet.json"], &kubelet))
	assert.Equal(t, "/devfleet-7-member-1", kubelet.CgroupRoot)
	assert.Equal(t, []string{"10.210.7.5"}, kubelet.ClusterDNS)
	assert.Equal(t, new(false), kubelet.FailV1)
	assert.Equal(t, "nameserver 10.210.7.5\n", string(files["resolv.conf"]))
	assert.Contains(t, string(files["containerd.toml"]), `sandbox_image = "`+PauseImage+`"`)
	assert.Contains(t, string(files["containerd.toml"]), "restrict_oom_score_adj = true")
	commands := node.commands()
	assert.Equal(t, "containerd", commands[0].program, "the others need it")
	assert.Contains(t, commands[1].args, "--node-ip=10.210.7.6")
}

func TestWhatANodeIsSurvivesItsFile(t *testing.T) {
	node := &Node{Name: "a", Forwards: []int{1, 2}, Programs: map[string]string{"ip": "/sbin/ip"}}
	content, err := node.Encode()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "node.json")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	read, err := Load(file)
	require.NoError(t, err)
	assert.Equal(t, node, read)
}

func TestAnImageHasItsProgramAndAUser(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, []byte("bytes"), 0o755))
	archive := filepath.Join(dir, "image.tar")
	image := Image{Names: []string{"devfleet.local/a:1"}, Files: map[string]string{"program": program}, Entrypoint: []string{"/program"}}
	require.NoError(t, image.Write(archive))
	parts := untar(t, archive)
	assert.JSONEq(t, `[{"Config":"config.json","RepoTags":["devfleet.local/a:1"],"Layers":["layer.tar"]}]`, parts["manifest.json"])
	assert.Contains(t, parts["config.json"], `"User":"65532:65532"`)
	layer := filepath.Join(dir, "layer.tar")
	require.NoError(t, os.WriteFile(layer, []byte(parts["layer.tar"]), 0o600))
	files := untar(t, layer)
	assert.Equal(t, "bytes", files["program"])
	assert.Contains(t, files["etc/passwd"], "nonroot:x:65532")
	assert.Contains(t, files, "tmp/")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 3, "no layer is left behind")
}

func untar(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	parts := map[string]string{}
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if err == io.EOF { //nolint:errorlint // tar says it so
			return parts
		}
		require.NoError(t, err)
		content, err := io.ReadAll(reader)
		require.NoError(t, err)
		parts[header.Name] = string(content)
	}
}

func TestNamesOfServicesHaveAddresses(t *testing.T) {
	service := func(name, address string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.ServiceSpec{ClusterIP: address}}
	}
	endpoints := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: "headless-1", Labels: map[string]string{discoveryv1.LabelServiceName: "headless"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.244.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
			{Addresses: []string{"10.244.0.3"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
		},
	}
	r := newResolver(fake.NewClientset(service("web", "10.96.0.7"), service("headless", corev1.ClusterIPNone), endpoints))
	for name, test := range map[string]struct {
		kind    dnsmessage.Type
		code    dnsmessage.RCode
		address string
	}{
		"web.ns.svc.cluster.local.":      {dnsmessage.TypeA, dnsmessage.RCodeSuccess, "10.96.0.7"},
		"WEB.ns.svc.cluster.local.":      {dnsmessage.TypeA, dnsmessage.RCodeSuccess, "10.96.0.7"},
		"headless.ns.svc.cluster.local.": {dnsmessage.TypeA, dnsmessage.RCodeSuccess, "10.244.0.2"},
		"web.ns.svc.cluster.local. ":     {dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, ""},
		"none.ns.svc.cluster.local.":     {dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		"ghcr.io.":                       {dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
	} {
		t.Run(name+test.kind.String(), func(t *testing.T) {
			question := dnsmessage.Message{
				Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
				Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(strings.TrimSpace(name)), Type: test.kind, Class: dnsmessage.ClassINET}},
			}
			packed, err := question.Pack()
			require.NoError(t, err)
			content, err := r.answer(t.Context(), packed)
			require.NoError(t, err)
			var answer dnsmessage.Message
			require.NoError(t, answer.Unpack(content))
			assert.Equal(t, uint16(7), answer.ID)
			assert.Equal(t, test.code, answer.RCode)
			if test.address == "" {
				assert.Empty(t, answer.Answers)
				return
			}
			require.Len(t, answer.Answers, 1)
			assert.Equal(t, "dnsmessage.AResource{A: [4]byte{"+strings.ReplaceAll(test.address, ".", ", ")+"}}", answer.Answers[0].Body.GoString())
		})
	}
}
