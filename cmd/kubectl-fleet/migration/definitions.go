package migration

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/document"
)

// Annotations by which Helm knows the release of an object, and what it is to keep.
const (
	releaseNameAnnotation      = "meta.helm.sh/release-name"
	releaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
	resourcePolicyAnnotation   = "helm.sh/resource-policy"
	keepPolicy                 = "keep"
)

// fleetKinds matches the names of definitions that the charts of KubeFleet and of fleetflow have.
var fleetKinds = regexp.MustCompile(`\.(kubernetes-fleet\.io|kubefleet\.dev|fleetflow\.io)$|^clusterprofiles\.multicluster\.x-k8s\.io$`)

// Release is a release of Helm that has definitions of the fleet's kinds among its objects, which nothing keeps: they are deleted
// by an upgrade to a chart that has them not, and by the uninstallation of the release. Every object of these kinds goes with
// them, and everything that such an object owns.
type Release struct {
	Namespace, Name string
	// Definitions are the names of the definitions, in their order.
	Definitions []string
	// Kept says that they are annotated to be kept. Then only the uninstallation deletes them, which goes by what Helm has stored.
	Kept bool
}

// ReadReleases returns the releases of a cluster that would delete definitions.
func ReadReleases(ctx context.Context, c client.Client) ([]Release, error) {
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinitionList"})
	if err := (reader{c}).list(ctx, definitions); err != nil {
		return nil, err
	}
	var found []Release
	for _, release := range releasesOf(definitions.Items) {
		if release.Kept {
			stored, err := readStored(ctx, c, release)
			if err != nil {
				return nil, err
			}
			release.Definitions = slices.DeleteFunc(release.Definitions, func(name string) bool { return !slices.Contains(stored, name) })
		}
		if len(release.Definitions) > 0 {
			found = append(found, release)
		}
	}
	return found, nil
}

// releasesOf returns the releases that have definitions of the fleet's kinds, those that are kept apart from others.
func releasesOf(definitions []metav1.PartialObjectMetadata) (found []Release) {
	for i := range definitions {
		said := definitions[i].Annotations
		if said[releaseNameAnnotation] == "" || !fleetKinds.MatchString(definitions[i].Name) {
			continue
		}
		of := Release{Namespace: said[releaseNamespaceAnnotation], Name: said[releaseNameAnnotation],
			Kept: said[resourcePolicyAnnotation] == keepPolicy}
		at := slices.IndexFunc(found, func(r Release) bool { return r.Namespace == of.Namespace && r.Name == of.Name && r.Kept == of.Kept })
		if at < 0 {
			at, found = len(found), append(found, of)
		}
		found[at].Definitions = append(found[at].Definitions, definitions[i].Name)
	}
	for _, release := range found {
		slices.Sort(release.Definitions)
	}
	slices.SortStableFunc(found, func(a, b Release) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// readStored returns the definitions that Helm has stored with a release and would delete when it is uninstalled. Where the
// Secrets of Helm may not be read, it returns none: the annotations are what is known then.
func readStored(ctx context.Context, c client.Client, release Release) ([]string, error) {
	secrets := &corev1.SecretList{}
	err := c.List(ctx, secrets, client.InNamespace(release.Namespace),
		client.MatchingLabels{"owner": "helm", "name": release.Name, "status": "deployed"})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading release %s of Helm: %w", release.Name, err)
	}
	var names []string
	for i := range secrets.Items {
		found, err := definitionsIn(secrets.Items[i].Data["release"])
		if err != nil {
			return nil, fmt.Errorf("reading release %s of Helm: %w", release.Name, err)
		}
		names = append(names, found...)
	}
	return names, nil
}

// maxRelease bounds what a release of Helm may hold: a Secret has 1 MiB, and manifests compress well.
const maxRelease = 64 << 20

// definitionsIn returns the names of the definitions in a release as Helm stores it, JSON that is compressed and encoded, except
// for those that it says are kept.
func definitionsIn(stored []byte) (names []string, err error) {
	packed, err := base64.StdEncoding.DecodeString(string(stored))
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	release := struct {
		Manifest string `json:"manifest"`
	}{}
	if err := json.NewDecoder(io.LimitReader(unpacked, maxRelease)).Decode(&release); err != nil {
		return nil, err
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(release.Manifest)))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := document.ToJSON(text)
		if err != nil {
			return nil, err
		}
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(content, object); err != nil {
			return nil, err
		}
		if object.Kind == "CustomResourceDefinition" && object.Annotations[resourcePolicyAnnotation] != keepPolicy {
			names = append(names, object.Name)
		}
	}
}

// Describe returns what a release would delete, and how that is kept. A cluster that is not the hub is named by its context.
func (r Release) Describe(kubeContext string) string {
	kubectl := "kubectl"
	if kubeContext != "" {
		kubectl += " --context " + kubeContext
	}
	if r.Kept {
		return fmt.Sprintf("Helm has stored %d definition(s) of the fleet's kinds with release %s in namespace %s, and deletes them when it is uninstalled, with every object of these kinds "+
			"and everything that is placed: do not uninstall it. Let fleetflow's chart take its place under the same name, or have Helm forget it: %s -n %s delete secret -l owner=helm,name=%s",
			len(r.Definitions), r.Name, r.Namespace, kubectl, r.Namespace, r.Name)
	}
	return fmt.Sprintf("release %s of Helm in namespace %s has %d definition(s) of the fleet's kinds among its objects, as KubeFleet's charts have them: an upgrade of it to "+
		"fleetflow's chart would delete them, with every object of these kinds and everything that is placed. Keep them first: %s annotate crd --overwrite %s %s=%s; "+
		"and do not uninstall this release before fleetflow's chart has taken its place: Helm would delete them all the same",
		r.Name, r.Namespace, len(r.Definitions), kubectl, strings.Join(r.Definitions, " "), resourcePolicyAnnotation, keepPolicy)
}

// RefuseReleases returns an error if a release of a cluster would delete definitions.
func RefuseReleases(ctx context.Context, c client.Client, kubeContext string) error {
	releases, err := ReadReleases(ctx, c)
	if err != nil {
		return err
	}
	for _, release := range releases {
		if !release.Kept {
			return fmt.Errorf("%s. kubectl fleet migrate check says more", release.Describe(kubeContext))
		}
	}
	return nil
}

// checkReleases says which releases of Helm would delete definitions, on the hub and on members that were named.
func (c *checker) checkReleases() {
	for _, cluster := range c.Releases {
		for _, release := range cluster.Releases {
			object := "release " + release.Namespace + "/" + release.Name
			if cluster.Context != "" {
				object += " on " + cluster.Context
			}
			weight := InTheWay
			reason := "DefinitionsOfRelease"
			if release.Kept {
				weight = Note
				reason = "DefinitionsStored" // it is not in the way of an upgrade
			}
			c.report.find(weight, reason, object, release.Describe(cluster.Context))
		}
	}
}
