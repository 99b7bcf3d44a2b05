package peer.hdfs;

import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import peer.Conversation;

/** A name node and a data node: {@code Server DIRECTORY LOG}; {@code port} answers the name node's port. */
public final class Server {
    private Server() {
    }

    public static void main(String[] args) throws Exception {
        Conversation.hold(args[1], () -> {
            Configuration settings = new HdfsConfiguration();
            settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, args[0]);
            settings.set("dfs.permissions.enabled", "false");
            MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings).numDataNodes(1).format(true).build();
            cluster.waitActive();
            return (request, more) -> List.of(List.of(String.valueOf(cluster.getNameNodePort())));
        });
    }
}
