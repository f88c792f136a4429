//go:build integration

package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// change is a change of a manifest. The same change of the same manifest gives the same manifest, so that what failed can be
// repeated without those that do not matter.
type change struct {
	What string
	Seed uint64
	// Keeps reports whether the change leaves immutable fields as they are.
	Keeps bool
}

func (c change) String() string {
	if c.Keeps {
		return fmt.Sprintf("%s#%x", c.What, c.Seed)
	}
	return fmt.Sprintf("%s#%x anywhere", c.What, c.Seed)
}

// fixed are the immutable fields of each kind. A * is any item of a list.
var fixed = map[string][]string{
	"Secret":      {"/type"},
	"Service":     {"/spec/clusterIP"},
	"Deployment":  {"/spec/selector"},
	"ReplicaSet":  {"/spec/selector"},
	"DaemonSet":   {"/spec/selector"},
	"StatefulSet": {"/spec/selector", "/spec/serviceName", "/spec/podManagementPolicy", "/spec/volumeClaimTemplates"},
	"Job": {
		"/spec/completions", "/spec/template/metadata/labels", "/spec/template/spec/restartPolicy", "/spec/template/spec/containers",
	},
	"Pod": {
		"/spec/automountServiceAccountToken", "/spec/activeDeadlineSeconds", "/spec/tolerations", "/spec/containers/*/name", "/spec/containers/*/env",
	},
	"IngressClass":             {"/spec/controller"},
	"RoleBinding":              {"/roleRef"},
	"ClusterRoleBinding":       {"/roleRef"},
	"PersistentVolumeClaim":    {"/spec"},
	"PersistentVolume":         {"/spec/hostPath"},
	"StorageClass":             {"/provisioner", "/parameters", "/reclaimPolicy", "/volumeBindingMode"},
	"CSIDriver":                {"/spec/attachRequired", "/spec/volumeLifecycleModes"},
	"PriorityClass":            {"/value", "/preemptionPolicy"},
	"RuntimeClass":             {"/handler"},
	"EndpointSlice":            {"/addressType"},
	"ResourceClaimTemplate":    {"/spec"},
	"CustomResourceDefinition": {"/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/plural"},
}

// draft is a manifest that is changed, the rich object that it comes from, and the places that a change leaves alone.
type draft struct {
	manifest, rich map[string]any
	kept           []string
}

// places returns the places of the manifest that may be changed.
func (d draft) places() ([]field, []*listAt) { return places(d.manifest, d.kept) }

// field is a place in a manifest: a field of a map, or an item of a list.
type field struct {
	path  string
	owner map[string]any // nil for an item
	key   string
	list  *listAt
	index int
	// holds is whether a place that is left alone is below it, so that it may not be taken away as a whole.
	holds bool
}

// listAt is a list that can be replaced where it is.
type listAt struct {
	path  string
	items []any
	put   func([]any)
	holds bool
}

func (f field) value() any {
	if f.owner != nil {
		return f.owner[f.key]
	}
	return f.list.items[f.index]
}

func (f field) set(value any) {
	if f.owner != nil {
		f.owner[f.key] = value
		return
	}
	f.list.items[f.index] = value
}

// places returns the places of a manifest in a stable order. Those that name the object are left out, and so are kept ones.
func places(manifest map[string]any, kept []string) (fields []field, lists []*listAt) {
	holds := func(pattern string) bool {
		return slices.ContainsFunc(kept, func(k string) bool { return strings.HasPrefix(k, pattern+"/") })
	}
	var walk func(path, pattern string, value any, put func(any))
	walk = func(path, pattern string, value any, put func(any)) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				at := path + "/" + key
				like := pattern + "/" + key
				if path == "" && (key == "apiVersion" || key == "kind") || path == "/metadata" && (key == "name" || key == "namespace") {
					continue
				}
				if slices.Contains(kept, like) {
					continue
				}
				if at != "/metadata" {
					fields = append(fields, field{path: at, owner: v, key: key, holds: holds(like)})
				}
				walk(at, like, v[key], func(value any) { v[key] = value })
			}
		case []any:
			like := pattern + "/*"
			list := &listAt{path: path, items: v, put: func(items []any) { put(items) }, holds: holds(like)}
			lists = append(lists, list)
			for i, item := range v {
				at := fmt.Sprintf("%s/%d", path, i)
				fields = append(fields, field{path: at, list: list, index: i, holds: list.holds})
				walk(at, like, item, func(value any) { v[i] = value })
			}
		}
	}
	walk("", "", manifest, nil)
	return fields, lists
}

// changes are the changes that are drawn, each with its weight.
var changes = []struct {
	what   string
	weight int
	make   func(r *rand.Rand, d draft)
}{
	{"change a value", 8, changeValue},
	{"remove a field", 6, removeField},
	{"remove an item", 5, removeItem},
	{"restore a field", 6, restoreField},
	{"restore an item", 5, restoreItem},
	{"reorder a list", 4, reorderList},
	{"duplicate an item", 3, duplicateItem},
	{"rename an item", 5, renameItem},
	{"set null", 3, setNull},
	{"empty a value", 3, emptyValue},
	{"add a key", 4, addKey},
	{"spell a quantity differently", 3, respellQuantity},
	{"make it large", 1, makeLarge},
	{"make it small", 1, makeSmall},
	{"set an unknown field", 1, setUnknown},
	{"name another version", 3, changeVersion},
}

// drawChange draws what kind of change is made.
func drawChange(r *rand.Rand, keeps bool) change {
	total := 0
	for _, c := range changes {
		total += c.weight
	}
	n := r.IntN(total)
	for _, c := range changes {
		if n -= c.weight; n < 0 {
			return change{What: c.what, Seed: r.Uint64(), Keeps: keeps}
		}
	}
	panic("unreachable")
}

// applyTo makes the change.
func (c change) applyTo(manifest, rich map[string]any) {
	d := draft{manifest: manifest, rich: rich}
	if c.Keeps {
		d.kept = fixed[rich["kind"].(string)]
	}
	for _, known := range changes {
		if known.what == c.What {
			known.make(rand.New(rand.NewPCG(c.Seed, 0)), d)
		}
	}
}

// pick returns one of the items that fit, and whether any does.
func pick[T any](r *rand.Rand, items []T, fits func(T) bool) (T, bool) {
	var found []T
	for _, item := range items {
		if fits(item) {
			found = append(found, item)
		}
	}
	if len(found) == 0 {
		var none T
		return none, false
	}
	return found[r.IntN(len(found))], true
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}

// words are other values of fields that take few, by the name of the field or by kind and path. A path that ends with a slash is of
// all keys of a map.
var words = map[string][]any{
	"protocol": {"TCP", "UDP", "SCTP"}, "imagePullPolicy": {"Always", "IfNotPresent", "Never"}, "effect": {"NoSchedule", "NoExecute"},
	"policyTypes": {"Ingress", "Egress"}, "pathType": {"Prefix", "Exact", "ImplementationSpecific"}, "failurePolicy": {"Ignore", "Fail"},
	"concurrencyPolicy": {"Allow", "Forbid", "Replace"}, "whenUnsatisfiable": {"DoNotSchedule", "ScheduleAnyway"}, "port": {int64(80), int64(53), int64(8080)},
	"containerPort": {int64(80), int64(53), int64(8080)}, "targetPort": {int64(80), "http", int64(8081)}, "maxUnavailable": {int64(1), "10%", int64(0)},
	"choice": {"one", "two", "three"}, "Widget/spec/map/*/kind": {"K", "L"}, "either": {int64(1), "1"}, "clusterIP": {"None"},
	"externalTrafficPolicy": {"Local", "Cluster"},
	"schedule":              {"@daily", "0 0 * * *", "*/5 * * * *"}, "podManagementPolicy": {"Parallel", "OrderedReady"}, "sessionAffinity": {"None", "ClientIP"},
	"whole": {int64(9007199254740993), int64(9007199254740992), int64(9223372036854775807), int64(-9007199254740993), int64(0)},
	"value": {int64(9007199254740993), int64(9007199254740994), int64(1)}, "ratio": {0.1, 1.0, int64(1), 1e21, 123456789.125},
	"preemptionPolicy": {"Never", "PreemptLowerPriority"}, "unhealthyPodEvictionPolicy": {"AlwaysAllow", "IfHealthyBudget"},
	"acquireTime": {"2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.1Z", "2026-01-01T01:00:00.000000+01:00"},
	"operator":    {"Exists", "Equal", "In", "NotIn"}, "restartPolicy": {"Never", "OnFailure", "Always"},
	"expression":      {"true", "false", "1 == 1"},
	"valueExpression": {"'v'", "'w'"}, "reason": {"Invalid", "Forbidden"}, "validationActions": {"Deny", "Warn", "Audit"},
	"operations": {"CREATE", "UPDATE", "DELETE", "*"}, "sideEffects": {"None", "NoneOnDryRun"}, "selectPolicy": {"Min", "Max", "Disabled"},
	"accessModes": {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"}, "volumeMode": {"Filesystem", "Block"},
	"reclaimPolicy":                 {"Retain", "Delete"},
	"persistentVolumeReclaimPolicy": {"Retain", "Delete"}, "volumeBindingMode": {"Immediate", "WaitForFirstConsumer"},
	"fsGroupPolicy": {"File", "None", "ReadWriteOnceWithFSType"}, "volumeLifecycleModes": {"Persistent", "Ephemeral"},
	"internalTrafficPolicy": {"Local", "Cluster"}, "ipFamilyPolicy": {"SingleStack", "PreferDualStack"}, "whenDeleted": {"Retain", "Delete"},
	"whenScaled": {"Retain", "Delete"}, "allocationMode": {"ExactCount", "All"}, "caBundle": {"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t", "MTIz"},
	"RoleBinding/subjects/*/kind": {"User", "Group"}, "ClusterRoleBinding/subjects/*/kind": {"User", "Group"},
	"HorizontalPodAutoscaler/spec/behavior/scaleDown/policies/*/type": {"Pods", "Percent"},
	"Secret/data/": {"MTIz", "NDU=", "Ng=="}, "ConfigMap/binaryData/": {"MTIz", "NDU=", "Ng=="},
	"Service/spec/type":                        {"ClusterIP", "NodePort", "LoadBalancer"},
	"LimitRange/spec/limits/*/type":            {"Container", "Pod", "PersistentVolumeClaim"},
	"FlowSchema/spec/distinguisherMethod/type": {"ByUser", "ByNamespace"},
	"StatefulSet/spec/updateStrategy/type":     {"RollingUpdate", "OnDelete"}, "DaemonSet/spec/updateStrategy/type": {"RollingUpdate", "OnDelete"},
	"FlowSchema/spec/rules/*/nonResourceRules/*/verbs": {"get", "list", "*"}, "EndpointSlice/addressType": {"IPv4", "IPv6", "FQDN"},
}

// index is the number of an item in a path.
var index = regexp.MustCompile(`/[0-9]+(/|$)`)

// wordsOf returns the values that are drawn for a place, if it takes few.
func (d draft) wordsOf(path string) []any {
	like := index.ReplaceAllString(index.ReplaceAllString(path, "/*$1"), "/*$1") // twice, as two of them share a slash
	like = strings.TrimSuffix(like, "/*")                                        // an item is one of its list's
	end := strings.LastIndex(like, "/") + 1
	kind := d.rich["kind"].(string)
	for _, of := range []string{kind + like, kind + like[:end], like[end:]} {
		if known := words[of]; len(known) > 0 {
			return known
		}
	}
	return nil
}

// measure is a number and its unit.
var measure = regexp.MustCompile(`^[0-9]+([A-Za-z]+|%)$`)

// otherValue returns another value for a place.
func (d draft) otherValue(r *rand.Rand, path string, value any) any {
	if known := d.wordsOf(path); len(known) > 0 && r.IntN(8) > 0 {
		return known[r.IntN(len(known))]
	}
	switch v := value.(type) {
	case bool:
		return !v
	case int64:
		return v + int64(r.IntN(5)) - 2
	case float64:
		return v * 2
	case string:
		if unit := measure.FindStringSubmatch(v); unit != nil {
			return fmt.Sprint(r.IntN(30), unit[1])
		}
		return strings.TrimRight(v, "0123456789") + fmt.Sprint(r.IntN(30))
	}
	return value
}

func changeValue(r *rand.Rand, d draft) {
	fields, _ := d.places()
	if f, ok := pick(r, fields, func(f field) bool { return isScalar(f.value()) }); ok {
		f.set(d.otherValue(r, f.path, f.value()))
	}
}

func removeField(r *rand.Rand, d draft) {
	fields, _ := d.places()
	if f, ok := pick(r, fields, func(f field) bool { return f.owner != nil && !f.holds }); ok {
		delete(f.owner, f.key)
	}
}

func removeItem(r *rand.Rand, d draft) {
	_, lists := d.places()
	if l, ok := pick(r, lists, func(l *listAt) bool { return len(l.items) > 0 && !l.holds }); ok {
		i := r.IntN(len(l.items))
		l.put(slices.Delete(slices.Clone(l.items), i, i+1))
	}
}

// restoreField sets a field of the rich object whose parent the manifest has.
func restoreField(r *rand.Rand, d draft) {
	fields, _ := d.places()
	maps := map[string]map[string]any{"": d.manifest, "/metadata": nil}
	if metadata, ok := d.manifest["metadata"].(map[string]any); ok {
		maps["/metadata"] = metadata
	}
	for _, f := range fields {
		if m, ok := f.value().(map[string]any); ok {
			maps[f.path] = m
		}
	}
	all, _ := places(d.rich, d.kept)
	parentOf := func(f field) map[string]any { return maps[f.path[:strings.LastIndex(f.path, "/")]] }
	f, ok := pick(r, all, func(f field) bool {
		parent := parentOf(f)
		_, has := parent[f.key]
		return f.owner != nil && !f.holds && parent != nil && !has
	})
	if ok {
		parentOf(f)[f.key] = runtime.DeepCopyJSONValue(f.value())
	}
}

// restoreItem inserts an item of the rich object into the same list of the manifest.
func restoreItem(r *rand.Rand, d draft) {
	_, lists := d.places()
	_, all := places(d.rich, d.kept)
	if from, ok := pick(r, all, func(from *listAt) bool {
		return len(from.items) > 0 && !from.holds && slices.ContainsFunc(lists, func(l *listAt) bool { return l.path == from.path })
	}); ok {
		to := lists[slices.IndexFunc(lists, func(l *listAt) bool { return l.path == from.path })]
		item := runtime.DeepCopyJSONValue(from.items[r.IntN(len(from.items))])
		to.put(slices.Insert(slices.Clone(to.items), r.IntN(len(to.items)+1), item))
	}
}

func reorderList(r *rand.Rand, d draft) {
	_, lists := d.places()
	if l, ok := pick(r, lists, func(l *listAt) bool { return len(l.items) > 1 && !l.holds }); ok {
		items := slices.Clone(l.items)
		r.Shuffle(len(items), func(i, k int) { items[i], items[k] = items[k], items[i] })
		l.put(items)
	}
}

// duplicateItem inserts a copy of an item, mostly with another value of one of its fields.
func duplicateItem(r *rand.Rand, d draft) {
	_, lists := d.places()
	l, ok := pick(r, lists, func(l *listAt) bool { return len(l.items) > 0 && !l.holds })
	if !ok {
		return
	}
	item := runtime.DeepCopyJSONValue(l.items[r.IntN(len(l.items))])
	if fields, isMap := item.(map[string]any); isMap && len(fields) > 0 && r.IntN(4) > 0 {
		key := slices.Sorted(maps.Keys(fields))[r.IntN(len(fields))]
		fields[key] = d.otherValue(r, l.path+"/*/"+key, fields[key])
	}
	l.put(slices.Insert(slices.Clone(l.items), r.IntN(len(l.items)+1), item))
}

// namesOfItems are the fields by which items of lists are told apart.
var namesOfItems = []string{"name", "port", "containerPort", "mountPath", "ip", "key", "topologyKey", "type", "host", "path", "conditionType", "protocol", "kind"}

func renameItem(r *rand.Rand, d draft) {
	fields, _ := d.places()
	if f, ok := pick(r, fields, func(f field) bool {
		parts := strings.Split(f.path, "/")
		return f.owner != nil && slices.Contains(namesOfItems, f.key) && strings.Trim(parts[len(parts)-2], "0123456789") == "" && isScalar(f.value())
	}); ok {
		f.set(d.otherValue(r, f.path, f.value()))
	}
}

func setNull(r *rand.Rand, d draft) {
	fields, _ := d.places()
	if f, ok := pick(r, fields, func(f field) bool { return f.owner != nil && !f.holds }); ok {
		f.set(nil)
	}
}

func emptyValue(r *rand.Rand, d draft) {
	fields, _ := d.places()
	f, ok := pick(r, fields, func(f field) bool { return f.owner != nil && !f.holds && f.value() != nil })
	if !ok {
		return
	}
	switch f.value().(type) {
	case map[string]any:
		f.set(map[string]any{})
	case []any:
		f.set([]any{})
	case string:
		f.set("")
	case bool:
		f.set(false)
	case int64, float64:
		f.set(int64(0))
	}
}

// mapsOfWords are maps in which users choose the keys.
var mapsOfWords = []string{"labels", "annotations", "data", "matchLabels", "nodeSelector", "selector", "parameters", "sealed", "free", "settings"}

func addKey(r *rand.Rand, d draft) {
	fields, _ := d.places()
	if f, ok := pick(r, fields, func(f field) bool {
		_, isMap := f.value().(map[string]any)
		return isMap && f.owner != nil && slices.Contains(mapsOfWords, f.key)
	}); ok {
		value := fmt.Sprint("v", r.IntN(9))
		if f.path == "/data" && d.manifest["kind"] == "Secret" {
			value = "MTIz"
		}
		f.value().(map[string]any)[fmt.Sprint("k", r.IntN(5))] = value
	}
}

func respellQuantity(r *rand.Rand, d draft) {
	fields, _ := d.places()
	f, ok := pick(r, fields, func(f field) bool {
		text, isText := f.value().(string)
		_, err := resource.ParseQuantity(text)
		return isText && err == nil && !strings.HasPrefix(f.path, "/data") && !strings.Contains(f.path, "etadata/")
	})
	if !ok {
		return
	}
	quantity := resource.MustParse(f.value().(string))
	switch r.IntN(4) {
	case 0:
		f.set(quantity.AsDec().String())
	case 1:
		f.set(fmt.Sprint(quantity.MilliValue(), "m"))
	case 2:
		f.set(quantity.Value())
	case 3:
		f.set(quantity.AsApproximateFloat64())
	}
}

// sizes are below and above what the annotations of an object may have, alone and together with a copy of themselves.
var sizes = []int{100_000, 150_000, 250_000, 300_000}

func makeLarge(r *rand.Rand, d draft) {
	text := strings.Repeat("x", sizes[r.IntN(len(sizes))])
	if data, ok := d.manifest["data"].(map[string]any); ok && r.IntN(2) == 0 {
		data["large"] = text
		return
	}
	if spec, ok := d.manifest["spec"].(map[string]any); ok && d.manifest["kind"] == "Widget" {
		spec["free"] = map[string]any{"large": text}
		return
	}
	metadata, _ := d.manifest["metadata"].(map[string]any)
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations["example.com/large"] = text
}

func makeSmall(_ *rand.Rand, d draft) {
	fields, _ := d.places()
	for _, f := range fields {
		if f.owner != nil && strings.HasSuffix(f.path, "large") {
			delete(f.owner, f.key)
		}
	}
}

func setUnknown(r *rand.Rand, d draft) {
	fields, _ := d.places()
	if f, ok := pick(r, fields, func(f field) bool {
		_, isMap := f.value().(map[string]any)
		return isMap && !slices.Contains(mapsOfWords, f.path[strings.LastIndex(f.path, "/")+1:])
	}); ok {
		f.value().(map[string]any)["fromTheFuture"] = "1"
	}
}

// otherVersions are the versions of kinds that are served with the same fields in two.
var otherVersions = map[string]string{
	"differential.example.com/v1": "differential.example.com/v2", "differential.example.com/v2": "differential.example.com/v1",
}

func changeVersion(_ *rand.Rand, d draft) {
	if other, ok := otherVersions[d.manifest["apiVersion"].(string)]; ok {
		d.manifest["apiVersion"] = other
	}
}

// readList reads a list of maps, whole numbers with all their digits.
func readList(path string) ([]map[string]any, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what is drawn from: %w", err)
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var list []any
	if err := utiljson.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	out := make([]map[string]any, 0, len(list))
	for _, item := range list {
		out = append(out, item.(map[string]any))
	}
	return out, nil
}
