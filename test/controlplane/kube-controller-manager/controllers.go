package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1beta1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	"k8s.io/kubernetes/pkg/features"
	quota "k8s.io/kubernetes/pkg/quota/v1/install"
	tokens "k8s.io/kubernetes/pkg/serviceaccount"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/hostpath"
	"k8s.io/kubernetes/pkg/volume/nfs"
)

// loop is what a controller runs until its context ends. Some have two.
type loop = func(context.Context)

// constructor makes a controller as the function of its name in upstream's cmd/kube-controller-manager/app does.
type constructor func(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error)

// known are the controllers of this program by their names, each with the name of its client.
var known = map[string]struct {
	client    string
	construct constructor
}{
	names.ClusterRoleAggregationController:          {"clusterrole-aggregation-controller", clusterRoles},
	names.CronJobController:                         {"cronjob-controller", cronJobs},
	names.DaemonSetController:                       {"daemon-set-controller", daemonSets},
	names.DeploymentController:                      {"deployment-controller", deployments},
	names.DisruptionController:                      {"disruption-controller", disruptions},
	names.EndpointsController:                       {"endpoint-controller", endpoints},
	names.EndpointSliceController:                   {"endpointslice-controller", endpointSlices},
	names.EphemeralVolumeController:                 {"ephemeral-volume-controller", ephemeralVolumes},
	names.GarbageCollectorController:                {"generic-garbage-collector", garbage},
	names.JobController:                             {"job-controller", jobs},
	names.NamespaceController:                       {"namespace-controller", namespaces},
	names.PersistentVolumeBinderController:          {"persistent-volume-binder", volumes},
	names.PersistentVolumeClaimProtectionController: {"pvc-protection-controller", claimProtection},
	names.PersistentVolumeProtectionController:      {"pv-protection-controller", volumeProtection},
	names.ReplicaSetController:                      {"replicaset-controller", replicaSets},
	names.ResourceQuotaController:                   {"resourcequota-controller", quotas},
	names.RootCACertificatePublisherController:      {"root-ca-cert-publisher", rootCertificates},
	names.ServiceAccountController:                  {"service-account-controller", serviceAccounts},
	names.ServiceAccountTokenController:             {"tokens-controller", serviceAccountTokens},
	names.StatefulSetController:                     {"statefulset-controller", statefulSets},
	names.TTLAfterFinishedController:                {"ttl-after-finished-controller", finishedJobs},
}

// workers returns a loop of so many workers.
func workers(run func(context.Context, int), count int32) []loop {
	return []loop{func(ctx context.Context) { run(ctx, int(count)) }}
}

func clusterRoles(_ context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	c := clusterroleaggregation.NewClusterRoleAggregation(m.informers.Rbac().V1().ClusterRoles(), client.RbacV1())
	return workers(c.Run, 5), nil
}

func cronJobs(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	batch := m.informers.Batch().V1()
	c, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, m.config.CronJobController.ConcurrentCronJobSyncs), nil
}

func daemonSets(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	apps := m.informers.Apps().V1()
	core := m.informers.Core().V1()
	c, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), client,
		flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	if err != nil {
		return nil, err
	}
	return workers(c.Run, m.config.DaemonSetController.ConcurrentDaemonSetSyncs), nil
}

func deployments(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	apps := m.informers.Apps().V1()
	c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), m.informers.Core().V1().Pods(), client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, m.config.DeploymentController.ConcurrentDeploymentSyncs), nil
}

func disruptions(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	rest, err := m.clients.Config("disruption-controller")
	if err != nil {
		return nil, err
	}
	scales, err := scale.NewForConfig(rest, m.mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return nil, err
	}
	apps := m.informers.Apps().V1()
	core := m.informers.Core().V1()
	c := disruption.NewDisruptionController(ctx, core.Pods(), m.informers.Policy().V1().PodDisruptionBudgets(),
		core.ReplicationControllers(), apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), client, m.mapper, scales, client.Discovery())
	return workers(c.Run, m.config.DisruptionController.ConcurrentDisruptionSyncs), nil
}

func endpoints(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	core := m.informers.Core().V1()
	with := m.config.EndpointController
	c := endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), client, with.EndpointUpdatesBatchPeriod.Duration)
	return workers(c.Run, with.ConcurrentEndpointSyncs), nil
}

func endpointSlices(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	core := m.informers.Core().V1()
	with := m.config.EndpointSliceController
	c := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(), m.informers.Discovery().V1().EndpointSlices(),
		with.MaxEndpointsPerSlice, client, with.EndpointUpdatesBatchPeriod.Duration)
	return workers(c.Run, with.ConcurrentServiceEndpointSyncs), nil
}

func ephemeralVolumes(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	core := m.informers.Core().V1()
	c, err := ephemeral.NewController(ctx, client, core.Pods(), core.PersistentVolumeClaims())
	if err != nil {
		return nil, err
	}
	return workers(c.Run, m.config.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs), nil
}

func garbage(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	with := m.config.GarbageCollectorController
	if !with.EnableGarbageCollector {
		return nil, nil
	}
	watching, err := m.metadataClient("metadata-informers", 1)
	if err != nil {
		return nil, err
	}
	// Each deletion takes two calls.
	deleting, err := m.metadataClient("generic-garbage-collector", 2)
	if err != nil {
		return nil, err
	}
	discovering, err := m.clients.DiscoveryClient("generic-garbage-collector")
	if err != nil {
		return nil, err
	}
	ignored := make(map[schema.GroupResource]struct{})
	for _, r := range with.GCIgnoredResources {
		ignored[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = struct{}{}
	}
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, watching, m.mapper, ignored, m.anyInformers, m.started)
	c, err := garbagecollector.NewComposedGarbageCollector(ctx, client, deleting, m.mapper, graph)
	if err != nil {
		return nil, err
	}
	return []loop{
		func(ctx context.Context) { c.Run(ctx, int(with.ConcurrentGCSyncs), discoverAgain) },
		func(ctx context.Context) { c.Sync(ctx, discovering, discoverAgain) },
	}, nil
}

func jobs(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	var workloads schedulinginformers.WorkloadInformer
	var groups schedulinginformers.PodGroupInformer
	if utilfeature.DefaultFeatureGate.Enabled(features.WorkloadWithJob) {
		workloads = m.informers.Scheduling().V1beta1().Workloads()
		groups = m.informers.Scheduling().V1beta1().PodGroups()
	}
	c, err := job.NewController(ctx, client, m.informers.Core().V1().Pods(), m.informers.Batch().V1().Jobs(), workloads, groups)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, m.config.JobController.ConcurrentJobSyncs), nil
}

func namespaces(ctx context.Context, m *manager, _ kubernetes.Interface) ([]loop, error) {
	rest, err := m.clients.Config("namespace-controller")
	if err != nil {
		return nil, err
	}
	// It asks for much and deletes much, and the limits of others would slow it down.
	rest.QPS *= 20
	rest.Burst *= 100
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(rest)
	if err != nil {
		return nil, err
	}
	c := namespace.NewNamespaceController(ctx, client, metadataClient, client.Discovery().ServerPreferredNamespacedResources,
		m.informers.Core().V1().Namespaces(), m.config.NamespaceController.NamespaceSyncPeriod.Duration, corev1.FinalizerKubernetes)
	return workers(c.Run, m.config.NamespaceController.ConcurrentNamespaceSyncs), nil
}

func volumes(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	with := m.config.PersistentVolumeBinderController
	core := m.informers.Core().V1()
	c, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient: client, SyncPeriod: with.PVClaimBinderSyncPeriod.Duration, VolumePlugins: m.volumePlugins(),
		VolumeInformer: core.PersistentVolumes(), ClaimInformer: core.PersistentVolumeClaims(),
		ClassInformer: m.informers.Storage().V1().StorageClasses(), PodInformer: core.Pods(), NodeInformer: core.Nodes(),
		EnableDynamicProvisioning: with.VolumeConfiguration.EnableDynamicProvisioning,
	})
	if err != nil {
		return nil, err
	}
	return []loop{c.Run}, nil
}

// volumePlugins returns those of upstream that make, delete or clear volumes.
func (m *manager) volumePlugins() []volume.VolumePlugin {
	with := m.config.PersistentVolumeBinderController.VolumeConfiguration
	clearing := with.PersistentVolumeRecyclerConfiguration
	return append(
		hostpath.ProbeVolumePlugins(volume.VolumeConfig{
			RecyclerMinimumTimeout: int(clearing.MinimumTimeoutHostPath), RecyclerTimeoutIncrement: int(clearing.IncrementTimeoutHostPath),
			RecyclerPodTemplate: volume.NewPersistentVolumeRecyclerPodTemplate(), ProvisioningEnabled: with.EnableHostPathProvisioning,
		}),
		nfs.ProbeVolumePlugins(volume.VolumeConfig{
			RecyclerMinimumTimeout: int(clearing.MinimumTimeoutNFS), RecyclerTimeoutIncrement: int(clearing.IncrementTimeoutNFS),
			RecyclerPodTemplate: volume.NewPersistentVolumeRecyclerPodTemplate(),
		})...)
}

func claimProtection(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	core := m.informers.Core().V1()
	c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), core.PersistentVolumeClaims(), core.Pods(), client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 1), nil
}

func volumeProtection(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	c, err := pvprotection.NewPVProtectionController(klog.FromContext(ctx), m.informers.Core().V1().PersistentVolumes(), client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 1), nil
}

func replicaSets(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	c := replicaset.NewReplicaSetController(ctx, m.informers.Apps().V1().ReplicaSets(), m.informers.Core().V1().Pods(), client,
		replicaset.BurstReplicas)
	return workers(c.Run, m.config.ReplicaSetController.ConcurrentRSSyncs), nil
}

func quotas(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	discovering, err := m.clients.DiscoveryClient("resourcequota-controller")
	if err != nil {
		return nil, err
	}
	discover := discovering.ServerPreferredNamespacedResources
	with := m.config.ResourceQuotaController
	what, err := quota.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(m.informers.ForResource), m.informers)
	if err != nil {
		return nil, err
	}
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient: client.CoreV1(), ResourceQuotaInformer: m.informers.Core().V1().ResourceQuotas(),
		ResyncPeriod: controller.StaticResyncPeriodFunc(with.ResourceQuotaSyncPeriod.Duration), ReplenishmentResyncPeriod: m.resync,
		InformerFactory: m.anyInformers, InformersStarted: m.started,
		DiscoveryFunc: discover, IgnoredResourcesFunc: what.IgnoredResources,
		Registry: generic.NewRegistry(what.Evaluators()), UpdateFilter: quota.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}
	return []loop{
		func(ctx context.Context) { c.Run(ctx, int(with.ConcurrentResourceQuotaSyncs)) },
		func(ctx context.Context) { c.Sync(ctx, discover, discoverAgain) },
	}, nil
}

func rootCertificates(_ context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	certificate, err := m.rootCertificate("root-ca-cert-publisher")
	if err != nil {
		return nil, err
	}
	core := m.informers.Core().V1()
	c, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, certificate)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 1), nil
}

// rootCertificate returns the one that --root-ca-file names, else the one by which the API server is known.
func (m *manager) rootCertificate(client string) ([]byte, error) {
	file := m.config.SAController.RootCAFile
	if file == "" {
		rest, err := m.clients.Config(client)
		if err != nil {
			return nil, err
		}
		return rest.CAData, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if _, err := cert.ParseCertsPEM(content); err != nil {
		return nil, fmt.Errorf("reading the certificates of %s: %w", file, err)
	}
	return content, nil
}

func serviceAccounts(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	core := m.informers.Core().V1()
	c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), client,
		serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 1), nil
}

func serviceAccountTokens(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	with := m.config.SAController
	if with.ServiceAccountKeyFile == "" {
		return nil, nil // nothing signs
	}
	key, err := keyutil.PrivateKeyFromFile(with.ServiceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the key that signs tokens: %w", err)
	}
	certificate, err := m.rootCertificate("tokens-controller")
	if err != nil {
		return nil, err
	}
	generator, err := tokens.JWTTokenGenerator(tokens.LegacyIssuer, key)
	if err != nil {
		return nil, fmt.Errorf("making what signs tokens: %w", err)
	}
	core := m.informers.Core().V1()
	c, err := serviceaccount.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), client,
		serviceaccount.TokensControllerOptions{TokenGenerator: generator, RootCA: certificate})
	if err != nil {
		return nil, err
	}
	return workers(c.Run, with.ConcurrentSATokenSyncs), nil
}

func statefulSets(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	apps := m.informers.Apps().V1()
	core := m.informers.Core().V1()
	c := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(),
		apps.ControllerRevisions(), client)
	return workers(c.Run, m.config.StatefulSetController.ConcurrentStatefulSetSyncs), nil
}

func finishedJobs(ctx context.Context, m *manager, client kubernetes.Interface) ([]loop, error) {
	c := ttlafterfinished.New(ctx, m.informers.Batch().V1().Jobs(), client)
	return workers(c.Run, m.config.TTLAfterFinishedController.ConcurrentTTLSyncs), nil
}
