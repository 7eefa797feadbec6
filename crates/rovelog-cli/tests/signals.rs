//! Signals by name and expression, derived fields, conditions and joined tables, for logs of each
//! format.
//!
//! `INSTA_UPDATE=always cargo nextest run -p rovelog-cli --features full` rewrites the snapshots.

mod common;

use common::runs;

runs! {
    in "ulog";
    signals_ulog:
        "cat one-topic+multi-id.ulg --topics t/0 --fields 'x,double=2*x,derivative(x)'",
        "cat one-topic+multi-id.ulg --topics t/0 --fields 't.x,norm(x,3)' -f csv",
        "cat one-topic+multi-id.ulg --topics t/0 --fields 'difference(x)' -f ndjson",
        "stats one-topic+multi-id.ulg --topics t/0 --fields 'x,x^2'",
        "export one-topic+multi-id.ulg --topics t/0 --to csv --fields 'timestamp,y=x/2'",
        "events one-topic.ulg 't.x > 1' 't.x changes'",
        "events one-topic.ulg 't.x > 1 for 1h' --exit-code",
        "events one-topic.ulg 't.x >= 0' -f json",
        "events one-topic.ulg one-topic+multi-id.ulg 't/0.x > 1' -f csv",
        "events one-topic.ulg 't.x > 1' -f ndjson";
    joined_ulog:
        "export one-topic+multi-id.ulg --to csv --on t --join t/1",
        "export one-topic+multi-id.ulg --to csv --on t --join t/1 --method nearest --tolerance 1ms",
        "export one-topic+multi-id.ulg --to csv --every 5ms --join t --method linear",
        "export one-topic+multi-id.ulg --to csv --on t --join t/1 --fields 'x,sum=t.x+t/1.x'";
    compared_signals:
        "diff one-topic.ulg one-topic+multi-id.ulg --fields 'x,double=2*x,norm(x)'",
        "diff one-topic.ulg one-topic+multi-id.ulg --topics t/0 --fields 'derivative(x)' -f json",
        "diff one-topic.ulg one-topic+multi-id.ulg --fields x -f csv",
        "diff one-topic.ulg one-topic+multi-id.ulg --topics t/0 --fields x^2 -f ndjson",
        "diff one-topic.ulg one-topic.ulg --fields x",
        "diff one-topic.ulg one-topic+multi-id.ulg --fields zzz",
        "diff one-topic.ulg one-topic+multi-id.ulg --topics nothing",
        "diff parameters+changes.ulg default-parameters.ulg -f csv",
        "diff format-redefined.ulg format-repeated.ulg -f csv";
    overlaid_ulog:
        "plot one-topic+multi-id.ulg 't/0.x,t/1.x' --width 60 --height 4",
        "plot one-topic.ulg one-topic+multi-id.ulg t/0.x --overlay --width 60 --height 4",
        "plot one-topic.ulg one-topic+multi-id.ulg --overlay",
        "plot one-topic.ulg --width 60 --height 4",
        "one-topic.ulg";
    refused_signals:
        "cat one-topic.ulg --fields 'norm(z)'",
        "cat one-topic.ulg --fields z",
        "events one-topic.ulg 't.x'",
        "events one-topic.ulg 't.x > 1 for 2'",
        "events one-topic.ulg 't.y > 1'",
        "events one-topic.ulg 'timestamp > 1s'",
        "plot one-topic.ulg 't.x + timestamp + 1 V'",
        "plot one-topic.ulg 'sine(t.x)'",
        "export one-topic.ulg --to csv --join t",
        "export one-topic.ulg --to mcap --on t -o x.mcap",
        "export one-topic.ulg --to csv --on nothing",
        "export one-topic.ulg --to csv --on t --method next";
}

runs! {
    in "rld";
    signals_rld:
        "diff v4.rld v4.rld --fields 'V1,I1,P=V1*I1'",
        "cat v4.rld --fields 'V1,I1,P=V1*I1' -E +5ms",
        "export v4.rld --to csv --fields 'I1L,I1H,I1,E=integral(V1*I1)' -E +5ms",
        "stats v4.rld --fields 'V1*I1'",
        "events v4.rld 'V1 > 0' 'I1 > 1 and V1 > 0'",
        "events v4.rld 'V1 > I1'",
        "plot v4.rld --width 60 --height 4",
        "plot v4.rld 'V1,I1,DI1' --width 60 --height 4",
        "plot v4.rld v4.rld 'V1*I1' --overlay --align utc --width 60 --height 4",
        "plot v4.rld V1 --align utc",
        "export v4.rld --to csv --every 2ms --fields V1,I1 --method linear -E +10ms";
}

runs! {
    in "rosbag";
    signals_rosbag:
        "diff robot.bag robot.bag --fields 'latitude,deg(rad(longitude))'",
        "cat robot.bag --topics /fix --fields 'latitude,deg(rad(longitude))'",
        "export robot.bag --to csv --on /fix --join /camera --fields 'latitude,north=latitude-48'",
        "events robot.bag 'latitude > 0' '/fix.header.seq changes'",
        "cat definition-of-same-type.bag --topics /b -f csv",
        "bag info robot.bag",
        "plot robot.bag header";
}

runs! {
    in "vel";
    signals_vel:
        "diff pose-wxyz.vel pose-wxyz.vel --fields 'roll,deg(yaw)'",
        "cat pose-wxyz.vel --topics RobotPoseM --fields 'roll,yaw' -f csv",
        "export pose-wxyz.vel --to csv --topics RobotPoseM --fields 'qw,yaw,deg(pitch)'",
        "events gps-degrees.vel 'in(GPSDataM.speed, m/s) > 1' 'GPSDataM.course > 90'",
        "events gps-degrees.vel 'GPSDataM.speed > GPSDataM.course'";
}
